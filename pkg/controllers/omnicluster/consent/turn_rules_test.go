package consent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// An override is for one set of changes, and for one turn.
func TestUseOverride(t *testing.T) {
	first, now := metav1.Time{Time: time.Unix(1, 0)}, metav1.Time{Time: time.Unix(2, 0)}

	for name, test := range map[string]struct {
		override *v1alpha1.RolloutOverride
		want     *metav1.Time
	}{
		"none":         {nil, nil},
		"of the turn":  {&v1alpha1.RolloutOverride{Hash: "a"}, &now},
		"of others":    {&v1alpha1.RolloutOverride{Hash: "b"}, nil},
		"already used": {&v1alpha1.RolloutOverride{Hash: "a", UsedTime: &first}, &first},
	} {
		before := test.override.DeepCopy()
		next := &v1alpha1.OmniClusterRollout{Override: test.override}
		useOverride(next, "a", now)

		var got *metav1.Time
		if next.Override != nil {
			got = next.Override.UsedTime
		}

		if !cmp.Equal(got, test.want) || !cmp.Equal(before, test.override) {
			t.Errorf("%s: used at %v, and what it was made of: %+v", name, got, test.override)
		}
	}
}

// The end of a turn is never before its ticket, or the ticket would stay for ever, and no later than now otherwise, or it
// would end the next one.
func TestTimeOfTheEnd(t *testing.T) {
	now := time.Unix(1000, 0)
	ticket := func(hash string, since time.Duration) *v1alpha1.RolloutTicket {
		return &v1alpha1.RolloutTicket{Hash: hash, Since: metav1.Time{Time: now.Add(since)}}
	}

	for name, test := range map[string]struct {
		ticket *v1alpha1.RolloutTicket
		last   time.Duration // of the end that the status has, from now
		ends   time.Duration // of a turn that ends now
		want   time.Duration // of the end in the status
	}{
		"no ticket":                         {nil, -time.Minute, 0, -time.Minute},
		"no ticket, an end to come":         {nil, time.Minute, 0, 0},
		"its ticket":                        {ticket("a", -time.Hour), -time.Minute, 0, -time.Minute},
		"its ticket, an end to come":        {ticket("a", -time.Hour), time.Minute, 0, 0},
		"its ticket is to come":             {ticket("a", time.Second), time.Minute, time.Second, time.Second},
		"the ticket of others is to come":   {ticket("b", time.Second), time.Minute, 0, 0},
		"a newer ticket for it, in between": {ticket("a", 2*time.Minute), time.Minute, 2 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decision{facts: Facts{Cluster: newCluster(), Now: now, Gate: Gate{Ticket: test.ticket}}}
			status := v1alpha1.OmniClusterRollout{Last: &v1alpha1.RolloutResult{Hash: "a", Time: metav1.Time{Time: now.Add(test.last)}}}

			if got := d.lastTurn(status).Time.Sub(now); got != test.want {
				t.Errorf("the end in the status: %s", got)
			}

			next := &v1alpha1.OmniClusterRollout{}
			if d.end(next, "a", v1alpha1.RolloutDone); next.Last.Time.Sub(now) != test.ends || next.Last.Hash != "a" {
				t.Errorf("the end: %+v", next.Last)
			}
		})
	}
}

// What is left of a turn that ended without a plan is no fix of what failed; anything else may be one.
func TestRememberLeft(t *testing.T) {
	for name, test := range map[string]struct {
		state   v1alpha1.RolloutState
		left    string
		changes []string
		want    string
	}{
		"all of it":       {v1alpha1.RolloutFailed, "", []string{"a", "b"}, "next"},
		"a part of it":    {v1alpha1.RolloutFailed, "", []string{"b"}, "next"},
		"and another one": {v1alpha1.RolloutFailed, "", []string{"b", "c"}, ""},
		"known already":   {v1alpha1.RolloutFailed, "left", []string{"a"}, "left"},
		"it was held":     {v1alpha1.RolloutHeld, "", []string{"a"}, ""},
	} {
		before := v1alpha1.OmniClusterRollout{State: test.state, Changes: []string{"a", "b"}}
		next := &v1alpha1.OmniClusterRollout{Hash: "next", Changes: test.changes, Failure: &v1alpha1.RolloutFailure{Left: test.left}}

		if (Decision{}).rememberLeft(next, before); next.Failure.Left != test.want {
			t.Errorf("%s: %q", name, next.Failure.Left)
		}
	}
}

// A turn that was overdue succeeded only if the cluster runs, nothing of the turn is left, and nothing else failed.
func TestSucceeded(t *testing.T) {
	left, other, going := create("left"), create("other"), teardown("going", time.Unix(0, 0))
	left.Digest, other.Digest = "1", "2"
	going.Kind, going.TearingDown = v1alpha1.ChangeMachineRemoval, true

	type facts struct {
		turn    Turn
		failure *v1alpha1.RolloutFailure
		gated   []plan.Change
		others  []plan.Change
	}

	for name, test := range map[string]struct {
		edit func(*facts)
		want bool
	}{
		"it runs":                       {func(*facts) {}, true},
		"Omni says that it runs":        {func(f *facts) { f.turn.Healthy, f.turn.Recovered = false, true }, true},
		"it does not run":               {func(f *facts) { f.turn.Healthy = false }, false},
		"there was no failure":          {func(f *facts) { f.failure = nil }, false},
		"a plan has ended the turn":     {func(f *facts) { f.failure.Left = "left" }, false},
		"it failed for another reason":  {func(f *facts) { f.failure.Message = "Omni refuses it" }, false},
		"Omni reports a failure":        {func(f *facts) { f.turn.Failed = "the upgrade failed" }, false},
		"a change of it is left":        {func(f *facts) { f.gated = []plan.Change{left} }, false},
		"a change of others is left":    {func(f *facts) { f.gated = []plan.Change{other} }, true},
		"Omni is still destroying":      {func(f *facts) { f.others = []plan.Change{going} }, false},
		"a change of others is planned": {func(f *facts) { f.others = []plan.Change{other} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{turn: Turn{Healthy: true, Deadline: time.Hour}}
			f.failure = &v1alpha1.RolloutFailure{Message: f.turn.overdueMessage()}
			test.edit(&f)

			cluster := newCluster()
			d := Decision{facts: Facts{Cluster: cluster, Gate: Gate{Turn: f.turn}}}
			before := v1alpha1.OmniClusterRollout{Changes: []string{d.salted(left)}, Failure: f.failure}
			cluster.Status.Rollout = &before

			var gated []Item
			for _, change := range f.gated {
				gated = append(gated, Item{Change: change, State: Planned})
			}

			for _, change := range f.others {
				d.Items = append(d.Items, Item{Change: change, State: Planned})
			}

			if got := d.succeeded(gated, before); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
