package clusteraccess

import (
	"context"
	"errors"
	"time"
)

// readTimeout is how long a worker waits for one read from a cluster.
const readTimeout = 10 * time.Second

// writeFactor is how many times as long as a read a write may take: an admission webhook may take 30 s.
const writeFactor = 3

// ErrSilent means that a cluster answers, but did not finish a read or a write in time.
var ErrSilent = errors.New("the workload cluster answers, but what it is asked to read or write does not end in time: " +
	"its etcd may have lost its quorum, or be overloaded, or an admission webhook there hangs")

// Read runs a read from a cluster, within readTimeout. A cluster that shows its version may hang on every access to its
// storage. The first worker that times out spares the others: until the probe has repeated the same read with success,
// Identify returns ErrSilent. The Cluster may be nil.
func Read[T any](ctx context.Context, cluster *Cluster, read func(context.Context) (T, error)) (T, error) {
	return within(ctx, 1, cluster, read, func(ctx context.Context) { _, _ = read(ctx) })
}

// Write is Read for a write, within three times as long. The probe must not write concurrently with the workers: it
// calls rehearse, which must change nothing.
func Write[T any](ctx context.Context, cluster *Cluster, write func(context.Context) (T, error), rehearse func(context.Context)) (T, error) {
	return within(ctx, writeFactor, cluster, write, rehearse)
}

// within runs do within a number of readTimeouts. If do times out, the cluster is marked as silent until again ends within the
// same time.
func within[T any](ctx context.Context, factor int, cluster *Cluster, do func(context.Context) (T, error), again func(context.Context)) (T, error) {
	limit := readTimeout
	if cluster != nil {
		limit = cluster.readTimeout
	}

	limited, cancel := context.WithTimeout(ctx, time.Duration(factor)*limit)
	defer cancel()

	found, err := do(limited)
	if err != nil && cluster != nil && ctx.Err() == nil && limited.Err() != nil {
		cluster.fallSilent(unanswered{repeat: again, factor: factor})
	}

	return found, err
}

// unanswered is a request that timed out.
type unanswered struct {
	repeat func(context.Context)
	factor int // how many times readTimeout it may take
}

// fallSilent marks the cluster as silent, and stores the request to repeat.
func (c *Cluster) fallSilent(request unanswered) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.askAgain = &request
	c.record(Identity{}, ErrSilent)
}

// timedOut returns the request that timed out, and how long its repeat may take; nil if none did.
func (c *Cluster) timedOut() (*unanswered, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.askAgain == nil {
		return nil, 0
	}

	return c.askAgain, time.Duration(c.askAgain.factor) * c.readTimeout
}

// listen repeats the request that timed out. Any answer is enough.
func (c *Cluster) listen(ctx context.Context) error {
	request, limit := c.timedOut()
	if request == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	if request.repeat(ctx); ctx.Err() != nil {
		return ErrSilent
	}

	c.mu.Lock()
	c.askAgain = nil
	c.mu.Unlock()

	return nil
}
