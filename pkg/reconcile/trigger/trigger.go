package trigger

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Trigger wakes one controller. K says what has changed; equal keys that are fired
// before they are looked at count once. The zero value is not usable.
type Trigger[K comparable] struct {
	fired  workqueue.TypedInterface[K]
	pacing Pacing
}

// Pacing says how soon a trigger wakes an object.
type Pacing struct {
	// Delay is how long after the first change an object is woken, so that a
	// burst of changes is looked at once.
	Delay time.Duration
	// Spacing is the shortest time between two wakings of the same object, so
	// that a storm of changes costs a bounded number of looks. It delays no
	// object that was not woken just before. Zero or less than Delay: Delay.
	Spacing time.Duration
}

// New makes a trigger.
func New[K comparable](pacing Pacing) *Trigger[K] {
	return &Trigger[K]{fired: workqueue.NewTyped[K](), pacing: pacing}
}

// Fire notes a change. It never blocks. What is fired before a controller has
// started is kept for it.
func (t *Trigger[K]) Fire(key K) { t.fired.Add(key) }

// Source feeds a controller: find says which objects a key concerns. A trigger has
// one source at most. It ends with the context that the controller gives it.
//
// What is fired while its object is being looked at is looked at again
// afterwards: the last change is never lost.
func (t *Trigger[K]) Source(find func(context.Context, K) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		context.AfterFunc(ctx, t.fired.ShutDown)

		go func() {
			timetable := newTimetable(t.pacing)

			for {
				key, shutdown := t.fired.Get()
				if shutdown {
					return
				}

				for _, request := range find(ctx, key) {
					queue.AddAfter(request, timetable.wait(request.NamespacedName, time.Now()))
				}

				t.fired.Done(key)
			}
		}()

		return nil
	})
}

// timetable remembers when objects are woken. It belongs to one goroutine.
type timetable struct {
	pacing Pacing
	due    map[types.NamespacedName]time.Time // the last waking, or the next one
	swept  time.Time
}

func newTimetable(pacing Pacing) *timetable {
	return &timetable{pacing: pacing, due: map[types.NamespacedName]time.Time{}}
}

// wait is how long from now an object is to be woken.
func (t *timetable) wait(name types.NamespacedName, now time.Time) time.Duration {
	t.sweep(now)

	due, known := t.due[name]

	switch {
	case known && due.After(now): // it will be woken, and will see this change
		return due.Sub(now)
	case known && due.Add(t.pacing.Spacing).After(now.Add(t.pacing.Delay)):
		due = due.Add(t.pacing.Spacing)
	default:
		due = now.Add(t.pacing.Delay)
	}

	t.due[name] = due

	return due.Sub(now)
}

// sweep forgets what was woken long ago.
func (t *timetable) sweep(now time.Time) {
	if now.Sub(t.swept) < time.Minute {
		return
	}

	t.swept = now

	for name, due := range t.due {
		if due.Add(t.pacing.Spacing).Before(now) {
			delete(t.due, name)
		}
	}
}
