package trigger

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Trigger triggers one controller. K identifies what has changed; equal keys that are fired before they are handled
// count once. The zero value is not usable.
type Trigger[K comparable] struct {
	fired  workqueue.TypedInterface[K]
	pacing Pacing
}

// Pacing is how soon a trigger enqueues an object.
type Pacing struct {
	// Delay is how long after the first change an object is enqueued, so that one run handles a burst of changes.
	Delay time.Duration
	// Spacing is the shortest time between two triggers of the same object, so that many changes cause a bounded number
	// of runs. It does not delay an object that was not triggered just before. Zero or less than Delay: Delay.
	Spacing time.Duration
}

// New returns a trigger.
func New[K comparable](pacing Pacing) *Trigger[K] {
	return &Trigger[K]{fired: workqueue.NewTyped[K](), pacing: pacing}
}

// Fire records a change. It never blocks. Keys that are fired before a controller has started are kept for it.
func (t *Trigger[K]) Fire(key K) { t.fired.Add(key) }

// Source returns the source for a controller: find returns the objects that a key concerns. A trigger has at most one
// source. It ends with the context of the controller.
//
// A key that is fired while its object is being reconciled causes another run: the last change is never lost.
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

// timetable records when objects are triggered. It belongs to one goroutine.
type timetable struct {
	pacing Pacing
	due    map[types.NamespacedName]time.Time // the last waking, or the next one
	swept  time.Time
}

func newTimetable(pacing Pacing) *timetable {
	return &timetable{pacing: pacing, due: map[types.NamespacedName]time.Time{}}
}

// wait returns when an object is to be triggered, from now.
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

// sweep removes old records.
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
