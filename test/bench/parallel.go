package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// inParallel calls do for 0 to n-1, each once, with so many workers. The first error ends it.
func inParallel(ctx context.Context, workers, n int, do func(ctx context.Context, worker, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var (
		next  atomic.Int64
		group sync.WaitGroup
	)

	for worker := range min(workers, n) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}

				if err := do(ctx, worker, i); err != nil {
					cancel(err)
				}
			}
		})
	}

	group.Wait()

	return context.Cause(ctx)
}
