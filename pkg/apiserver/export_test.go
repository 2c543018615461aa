package apiserver

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/requestbody"
)

// FinishWithin shortens how long a stop waits for requests that are under way.
func (c *Config) FinishWithin(long time.Duration) { c.requestGracePeriod = long }

// BodiesBudget is what the work for all requests may take together, in bytes.
const BodiesBudget = requestbody.Budget

// BodiesWithin bounds what the work for all requests may take together, in bytes.
func (c *Config) BodiesWithin(budget int64) { c.bodiesBudget = budget }

// ListsWaitFor shortens how long a list waits for its turn.
func (c *Config) ListsWaitFor(long time.Duration) { c.listTimeout = long }

// Signed makes a certificate for clients: of the authority, or one that signs itself.
var Signed = signed
