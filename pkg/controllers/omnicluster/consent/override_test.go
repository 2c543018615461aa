package consent

import (
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// newOverridden is a cluster outside its window, whose change somebody lets begin.
func newOverridden(t *testing.T) *turns {
	t.Helper()

	tt := newTurns(t)
	tt.wait = closed()
	tt.ask("v1.35.0", "v1.36.1")
	tt.run()
	tt.override()

	return tt
}

func TestOverride(t *testing.T) {
	tt := newTurns(t)
	tt.wait = closed()
	tt.ask("v1.35.0", "v1.36.1")
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", "")

	tt.override()
	tt.cluster.Status.Rollout.Override.Hash = strings.Repeat("0", 64)
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", "")

	// The annotation was taken away again.
	tt.override()
	tt.cluster.Annotations = nil
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", "")

	// Nobody recorded who it was.
	tt.override()
	tt.cluster.Status.Rollout.Override = nil
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", "")

	tt.override()
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")

	// Other changes are not overridden.
	tt.ask("v1.36.1", "v1.36.2")
	tt.pass(2 * time.Minute)
	tt.run()
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.36.1", v1alpha1.RolloutDone)
}

// An override counts for one turn: the same changes, asked for again later, wait, until somebody overrides them again.
func TestOverrideCountsOnce(t *testing.T) {
	tt := newTurns(t)
	tt.wait = closed()

	raise := func() {
		t.Helper()
		tt.ask("v1.35.0", "v1.36.1")
		tt.run()
	}
	finish := func() {
		t.Helper()
		tt.pass(2 * time.Minute)
		tt.run()
	}

	raise()
	tt.override()
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")

	if used := tt.status().Override.UsedTime; used != nil {
		t.Fatalf("used before the end of the turn: %s", used)
	}

	finish()
	tt.expect("", "1.36.1", v1alpha1.RolloutDone)

	if used := tt.status().Override.UsedTime; used == nil || !used.Time.Equal(tt.now) {
		t.Fatalf("used %s, want %s", used, tt.now)
	}

	// Back in another window, and forth again.
	tt.wait = Wait{}
	tt.ask("v1.36.1", "v1.35.0")
	tt.decide()
	tt.ticket()
	tt.run()
	finish()
	tt.expect("", "1.35.0", v1alpha1.RolloutDone)

	tt.gate.Ticket, tt.wait = nil, closed()
	raise()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", v1alpha1.RolloutDone)

	if _, message := tt.decide().HeldCondition(); !strings.Contains(message, "the override of 2026-11-24T12:00:00Z has been used up") {
		t.Error(message)
	}

	tt.override()
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", v1alpha1.RolloutDone)

	// An override of the changes that a ticket lets begin is used up with their turn, and so is one without a plan.
	tt.gate.Turn.Healthy = false
	tt.pass(3 * time.Hour)

	next := TurnWithoutPlan(tt.cluster, tt.gate, tt.now)
	if next == nil || next.Override.UsedTime == nil || tt.status().Override.UsedTime != nil {
		t.Errorf("%+v, before %+v", next, tt.status())
	}
}

// Nothing had begun: the override still counts.
func TestOverrideOutlastsATurnThatReturns(t *testing.T) {
	for name, stop := range map[string]func(*turns){
		"suspended between admission and write": func(tt *turns) {
			tt.decide()
			tt.expect(v1alpha1.RolloutAdmitted, "1.35.0", "")
			tt.cluster.Spec.Suspend = true
			tt.decide()
			tt.cluster.Spec.Suspend = false
		},
		"a ticket goes back without a plan": func(tt *turns) {
			tt.ticket()
			tt.gate.Turn.Healthy = false
			tt.cluster.Status.Rollout = TurnWithoutPlan(tt.cluster, tt.gate, tt.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt := newOverridden(t)
			stop(tt)

			if status := tt.status(); status.Last == nil || status.Last.Result != v1alpha1.RolloutReturned || status.Override.UsedTime != nil {
				t.Fatalf("%+v", status)
			}

			tt.run()
			tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", v1alpha1.RolloutReturned)
		})
	}
}

// A turn that failed has used up its override, in the same run: the changes that are left wait.
func TestFailedTurnUsesTheOverride(t *testing.T) {
	tt := newOverridden(t)
	tt.decide()
	tt.expect(v1alpha1.RolloutAdmitted, "1.35.0", "")

	tt.cluster.Status.Refusals = []v1alpha1.RefusedChange{{Type: plan.TypeCluster, ID: "demo", Message: "Omni refuses this"}}

	if d := tt.decide(); d.Begins() || tt.status().State != v1alpha1.RolloutHeld || tt.status().Override.UsedTime == nil {
		t.Errorf("begins %t: %+v", d.Begins(), tt.status())
	}
}

// Without a policy everything begins, and the override has had its effect.
func TestOverrideEndsWithThePolicy(t *testing.T) {
	tt := newOverridden(t)
	tt.decide()
	tt.gate = Gate{}
	tt.run()

	if tt.status().Override.UsedTime == nil {
		t.Errorf("%+v", tt.status())
	}
}
