package wake

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Bell wakes one controller. K says what has changed; equal keys that are rung
// before they are looked at count once. The zero value is not usable.
type Bell[K comparable] struct {
	rung  workqueue.TypedInterface[K]
	delay time.Duration
}

// NewBell makes a bell. Objects are woken after delay, so that a burst of
// changes is looked at once.
func NewBell[K comparable](delay time.Duration) *Bell[K] {
	return &Bell[K]{rung: workqueue.NewTyped[K](), delay: delay}
}

// Ring notes a change. It never blocks. What is rung before a controller has
// started is kept for it.
func (b *Bell[K]) Ring(key K) { b.rung.Add(key) }

// Source feeds a controller: find says which objects a key concerns. A bell has
// one source at most. It ends with the context that the controller gives it.
func (b *Bell[K]) Source(find func(context.Context, K) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		context.AfterFunc(ctx, b.rung.ShutDown)

		go func() {
			for {
				key, shutdown := b.rung.Get()
				if shutdown {
					return
				}

				for _, request := range find(ctx, key) {
					queue.AddAfter(request, b.delay)
				}

				b.rung.Done(key)
			}
		}()

		return nil
	})
}
