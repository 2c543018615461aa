package apiserver

import "time"

// FinishWithin shortens how long a stop waits for requests that are under way.
func (c *Config) FinishWithin(long time.Duration) { c.requestGracePeriod = long }

// ListsWaitFor shortens how long a list waits for its turn.
func (c *Config) ListsWaitFor(long time.Duration) { c.listTimeout = long }
