package clusteraccess

import (
	"context"
	"errors"
	"time"
)

// readTimeout is how long a worker waits for one read from a cluster.
const readTimeout = 10 * time.Second

// writeTimeout is the same for a write, as a multiple of it: an admission webhook may take 30 s.
const writeTimeout = 3

// ErrSilent says that a cluster answers, but did not end a read or a write in time.
var ErrSilent = errors.New("the workload cluster answers, but what it is asked to read or write does not end in time: " +
	"its etcd may have lost its quorum, or be overloaded, or an admission webhook there hangs")

// Read reads something from a cluster, within readTimeout. A cluster that shows its
// version may hang on everything that it stores. Whoever finds that out spares the
// others: until the same read ends, asked again by the probe and no worker,
// Identify returns ErrSilent. The Cluster may be nil.
func Read[T any](ctx context.Context, cluster *Cluster, read func(context.Context) (T, error)) (T, error) {
	limit := readTimeout
	if cluster != nil {
		limit = cluster.limit
	}

	return within(ctx, limit, cluster, read, func(ctx context.Context) { _, _ = read(ctx) })
}

// Write is Read for a write, within three times as long. The probe must not write
// behind the back of the workers: it rehearses, which must change nothing.
func Write[T any](ctx context.Context, cluster *Cluster, write func(context.Context) (T, error), rehearse func(context.Context)) (T, error) {
	limit := readTimeout
	if cluster != nil {
		limit = cluster.limit
	}

	return within(ctx, writeTimeout*limit, cluster, write, rehearse)
}

// within does something within a limit. If it does not end, the cluster has fallen
// silent until again ends.
func within[T any](ctx context.Context, limit time.Duration, cluster *Cluster, do func(context.Context) (T, error), again func(context.Context)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	found, err := do(limited)
	if err != nil && cluster != nil && ctx.Err() == nil && limited.Err() != nil {
		cluster.fallSilent(again)
	}

	return found, err
}

// fallSilent notes what did not end in time, and what to ask again.
func (c *Cluster) fallSilent(again func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.unanswered, c.found, c.err, c.probed = again, Identity{}, ErrSilent, c.now()
}

// listen asks again what did not end in time. Any answer will do.
func (c *Cluster) listen(ctx context.Context) error {
	c.mu.Lock()
	again := c.unanswered
	c.mu.Unlock()

	if again == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()

	if again(ctx); ctx.Err() != nil {
		return ErrSilent
	}

	c.mu.Lock()
	c.unanswered = nil
	c.mu.Unlock()

	return nil
}
