package rollout_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// world is a fleet under a policy, with a simulated clock.
type world struct {
	t        testing.TB
	now      time.Time
	policy   *v1alpha1.OmniRolloutPolicy
	clusters []*cluster
	checker  *checker
	random   *rand.Rand
	events   []event
	deadline time.Duration

	// step is the least time between two evaluations. fails is how many of 100 changes break a cluster. stale is how
	// many of 100 clusters are seen as they were at the evaluation before. Every so many evaluations, the evaluation
	// itself is checked.
	step                time.Duration
	fails, stale, every int

	seen                     map[string]rollout.Member
	views, returned, created int
	patches                  int       // how many there were
	next                     time.Time // when the policy asked to be looked at again
	dirty                    bool      // something has changed since the last look
}

// event is something that happens at a time.
type event struct {
	at time.Time
	do func()
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.random.Int64N(int64(most-least)))
}

func (w *world) at(when time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(w.events, when, func(e event, t time.Time) int { return cmp.Or(e.at.Compare(t), -1) })
	w.events = slices.Insert(w.events, i, event{when, do})
}

func (w *world) after(least, most time.Duration, do func()) {
	w.at(w.now.Add(w.between(least, most)), do)
}

func (w *world) read() *rollout.Policy { return read(w.t, w.policy) }

// run lets time pass until the given time.
func (w *world) run(until time.Time) {
	w.dirty = true

	for w.now.Before(until) && !w.t.Failed() {
		w.checker.recordProved(w.now)

		for len(w.events) > 0 && !w.events[0].at.After(w.now) {
			do := w.events[0].do
			w.events, w.dirty = w.events[1:], true
			do()
		}

		w.reconcile()

		if !w.next.IsZero() && !w.now.Before(w.next) || w.dirty {
			w.look()
			w.reconcile()
		}

		w.now = w.wake(until)
	}
}

func (w *world) reconcile() {
	for _, c := range w.clusters {
		c.omni(w)
		w.dirty = c.reconcile(w) || w.dirty
	}
}

// wake returns when something happens next.
func (w *world) wake(until time.Time) time.Time {
	next := until
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}

	if w.dirty {
		return w.now.Add(w.step)
	}

	if len(w.events) > 0 {
		sooner(w.events[0].at)
	}

	sooner(w.next)

	for _, c := range w.clusters {
		sooner(c.due(w))
	}

	if late := next.Truncate(w.step); late.Before(next) { // never early
		next = late.Add(w.step)
	}

	if !next.After(w.now) {
		next = w.now.Add(w.step)
	}

	return next
}

// look evaluates the policy, as its controller does.
func (w *world) look() {
	members, fresh, again := make([]rollout.Member, 0, len(w.clusters)), make(map[string]rollout.Member, len(w.clusters)), false

	for _, c := range w.clusters {
		member := c.member()
		fresh[c.name] = member

		if old, found := w.seen[c.name]; found && old.UID == member.UID && w.random.IntN(100) < w.stale {
			old.Paused, old.Stage = member.Paused, member.Stage
			again = again || !reflect.DeepEqual(old, member)
			member = old
		}

		members = append(members, member)
	}

	w.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })

	result := w.read().Evaluate(members, w.now)
	w.seen, w.views, w.dirty = fresh, w.views+1, again
	w.policy = w.policy.DeepCopy()
	w.policy.Status, w.next = result.Status, result.Next
	w.checker.look(w.now)
	w.checker.proved(w.policy.Status, w.now)

	if w.views%w.every == 0 {
		w.steady(members)
	}
}

// steady evaluates the policy again without any event in between: the result must be the same.
func (w *world) steady(members []rollout.Member) {
	again := w.read().Evaluate(members, w.now)
	if diff := gocmp.Diff(w.policy.Status, again.Status); diff != "" {
		w.t.Errorf("%s: a second look (-first +second):\n%s", w.now, diff)
	}

	between := w.now.Add(30 * 24 * time.Hour)

	switch {
	case again.Next.IsZero():
	case !again.Next.After(w.now):
		w.t.Errorf("at %s the next look is at %s", w.now, again.Next)
	default:
		between = w.now.Add(again.Next.Sub(w.now) / 2)
	}

	for _, when := range []time.Time{between, cmp.Or(again.Next, between.Add(time.Nanosecond)).Add(-time.Nanosecond)} {
		if diff := gocmp.Diff(w.policy.Status, w.read().Evaluate(members, when).Status); diff != "" {
			w.t.Errorf("looked at at %s, next at %s, and another one at %s:\n%s", w.now, again.Next, when, diff)
		}
	}
}

func (w *world) named(name string) *cluster {
	for _, c := range w.clusters {
		if c.name == name {
			return c
		}
	}

	return nil
}

// add makes a cluster that gets what it asks for at once, as new clusters do.
func (w *world) add(name string, stage int, asks content) {
	w.created++
	c := &cluster{name: name, uid: fmt.Sprint("uid-", w.created), stage: stage, asks: asks, has: asks, working: true, ends: w.now.Add(30 * time.Minute), askedAt: w.now}
	w.clusters = append(w.clusters, c)
	w.checker.made(c, w.now)
}

func (w *world) remove(c *cluster) {
	w.clusters = slices.DeleteFunc(w.clusters, func(one *cluster) bool { return one == c })
	w.checker.gone(c.name)
}
