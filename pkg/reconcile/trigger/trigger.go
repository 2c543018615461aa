// Package trigger lets events from outside Kubernetes trigger a controller.
//
// A Trigger is fired from callbacks that must not block, such as those of the local copies of Omni. It collects the
// keys, looks up the objects that they concern in its own goroutine, and adds them to the controller's queue.
package trigger

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Trigger triggers one controller. K identifies what has changed; equal keys that are fired before they are handled
// count once. The zero value is not usable.
type Trigger[K comparable] struct {
	fired   workqueue.TypedInterface[K]
	waiting *waiting[K]
	pacing  Pacing
}

// Pacing is how soon a trigger enqueues an object.
type Pacing struct {
	// Delay is how long after the first change an object is enqueued, so that one run handles a burst of changes.
	Delay time.Duration
	// Spacing is the shortest time between two triggers of the same object, so that many changes cause a bounded number
	// of runs. It does not delay an object that was not triggered just before. Zero or less than Delay: Delay.
	Spacing time.Duration
	// LongestSpacing is what Spacing grows to, doubled by each trigger that had to wait for it, while the changes of an
	// object do not end. Zero or less than Spacing: Spacing.
	LongestSpacing time.Duration
}

// New returns a trigger.
func New[K comparable](pacing Pacing) *Trigger[K] {
	return &Trigger[K]{fired: workqueue.NewTyped[K](), pacing: pacing}
}

// NewBounded returns a trigger for which only so many keys wait.
func NewBounded[K comparable](pacing Pacing, bound Bound[K]) *Trigger[K] {
	t := New[K](pacing)
	t.waiting = &waiting[K]{bound: bound, groups: map[string]map[K]struct{}{}}

	return t
}

// Fire records a change. It never blocks. Keys that are fired before a controller has started are kept for it, within
// the bound.
func (t *Trigger[K]) Fire(key K) {
	if t.waiting.admit(key) {
		t.fired.Add(key)
	}
}

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

				t.waiting.handle(key) // before find, which sees what was fired until now

				for _, request := range find(ctx, key) {
					queue.AddAfter(request, timetable.wait(request.NamespacedName, time.Now()))
				}

				t.fired.Done(key)
			}
		}()

		return nil
	})
}

// Names is Source for a trigger that is fired with the names of the objects themselves.
func Names(t *Trigger[types.NamespacedName]) source.Source {
	return t.Source(func(_ context.Context, name types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: name}}
	})
}

// timetable records when objects are triggered. It belongs to one goroutine.
type timetable struct {
	pacing    Pacing
	entries   map[types.NamespacedName]entry
	forgotten time.Time
}

// entry is when an object was triggered last, or will be next, and the shortest time from then to the one after.
type entry struct {
	due     time.Time
	spacing time.Duration
}

func newTimetable(pacing Pacing) *timetable {
	return &timetable{pacing: pacing, entries: map[types.NamespacedName]entry{}}
}

// wait returns when an object is to be triggered, from now.
func (t *timetable) wait(name types.NamespacedName, now time.Time) time.Duration {
	t.forgetOld(now)

	last, known := t.entries[name]
	soonest := now.Add(t.pacing.Delay)

	switch next := last.due.Add(last.spacing); {
	case known && last.due.After(now): // it will be triggered, and will see this change
		return last.due.Sub(now)
	case known && next.After(soonest):
		longest := max(t.pacing.Spacing, t.pacing.LongestSpacing)
		t.entries[name] = entry{due: next, spacing: min(2*last.spacing, longest)}
	default:
		t.entries[name] = entry{due: soonest, spacing: t.pacing.Spacing}
	}

	return t.entries[name].due.Sub(now)
}

// forgetOld removes old records.
func (t *timetable) forgetOld(now time.Time) {
	if now.Sub(t.forgotten) < time.Minute {
		return
	}

	t.forgotten = now

	for name, last := range t.entries {
		if last.due.Add(last.spacing).Before(now) {
			delete(t.entries, name)
		}
	}
}

// Bound limits how many keys of a trigger wait to be handled, for keys that somebody else invents.
type Bound[K comparable] struct {
	// Keys is how many keys of one group may wait.
	Keys int
	// GroupOf returns the group of a key.
	GroupOf func(K) string
	// Instead is called with a group for each of its keys that is dropped, because too many wait. It must not block, and
	// has to see to it that whatever the key concerns is looked at.
	Instead func(group string)
}

// waiting counts the keys that were fired and are not handled yet. A nil one has no bound.
type waiting[K comparable] struct {
	bound Bound[K]

	mu     sync.Mutex
	groups map[string]map[K]struct{}
}

// admit reports whether a key may wait. If not, Instead was called.
func (w *waiting[K]) admit(key K) bool {
	if w == nil {
		return true
	}

	group := w.bound.GroupOf(key)
	admitted := w.add(group, key)

	if !admitted {
		w.bound.Instead(group)
	}

	return admitted
}

func (w *waiting[K]) add(group string, key K) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	keys := w.groups[group]

	if _, known := keys[key]; known {
		return true
	}

	if len(keys) >= w.bound.Keys {
		return false
	}

	if keys == nil {
		keys = map[K]struct{}{}
		w.groups[group] = keys
	}

	keys[key] = struct{}{}

	return true
}

// handle records that a key waits no longer.
func (w *waiting[K]) handle(key K) {
	if w == nil {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	group := w.bound.GroupOf(key)
	delete(w.groups[group], key)

	if len(w.groups[group]) == 0 {
		delete(w.groups, group)
	}
}
