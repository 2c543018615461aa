package consent

import (
	"testing"
	"time"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// upgraded has Omni say which Talos it upgraded to last, and whether it does so now.
func (tt *turns) upgraded(phase specs.TalosUpgradeStatusSpec_Phase, last string) {
	tt.t.Helper()

	status := omnires.NewTalosUpgradeStatus("demo")
	if _, err := tt.omni.Get(tt.t.Context(), status.Metadata()); err != nil {
		if err = tt.omni.Create(tt.t.Context(), status); err != nil {
			tt.t.Fatal(err)
		}
	}

	omnitest.MustChange(tt.t, tt.omni, status, func(found *omnires.TalosUpgradeStatus) {
		found.TypedSpec().Value.Phase, found.TypedSpec().Value.LastUpgradeVersion = phase, last
	})
}

// bothBegin is a cluster whose turn, for both versions, has begun with Talos.
func bothBegin(t *testing.T) *turns {
	t.Helper()

	tt := newTurns(t)
	tt.upgraded(specs.TalosUpgradeStatusSpec_Done, "1.13.2")
	tt.ask("v1.35.0", "v1.36.1", "v1.13.2", "v1.13.3")
	tt.decide()
	tt.ticket()

	d := tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.35.0", "")

	if waiting := d.WaitingForOmni(); len(waiting) != 1 || waiting[0].Part != v1alpha1.ChangeKubernetesVersion || waiting[0].Reason == "" {
		t.Fatalf("waiting for Omni: %+v", waiting)
	}

	if len(tt.status().Changes) != 2 {
		t.Fatalf("the turn has %v", tt.status().Changes)
	}

	return tt
}

// TestTurnOfBothVersions has one turn for both versions. Whatever Omni says between the two writes, and although the cluster
// runs well meanwhile, the turn is not over.
func TestTurnOfBothVersions(t *testing.T) {
	tt := bothBegin(t)
	hash := tt.status().Hash

	for _, step := range []func(){
		func() {}, // Omni has not begun
		func() { tt.upgraded(specs.TalosUpgradeStatusSpec_Upgrading, "1.13.2") },
		func() { tt.gate.Turn.Started = tt.now }, // another process goes on
	} {
		step()
		tt.pass(10 * time.Minute)

		d := tt.run()
		tt.expect(v1alpha1.RolloutAdmitted, "1.35.0", "")

		if len(d.WaitingForOmni()) != 1 || len(d.WaitingForTurn()) != 0 || tt.status().Hash != hash {
			t.Errorf("%+v, %+v", d.Items, tt.status())
		}
	}

	tt.upgraded(specs.TalosUpgradeStatusSpec_Done, "1.13.3")
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")

	tt.pass(10 * time.Minute)
	tt.gate.Turn.Since = tt.now.Add(-time.Minute)
	tt.run()
	tt.expect("", "1.36.1", v1alpha1.RolloutDone)
}

// TestOverdueUpgradeOfTalos has Omni not finish Talos within the deadline of the turn. The version that waits for it has
// failed, too: it is not the fix.
func TestOverdueUpgradeOfTalos(t *testing.T) {
	tt := bothBegin(t)
	tt.upgraded(specs.TalosUpgradeStatusSpec_Upgrading, "1.13.2")
	tt.gate.Turn.Healthy = false
	tt.pass(3 * time.Hour)
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", v1alpha1.RolloutUnsuccessful)

	if failure := tt.status().Failure; failure == nil || failure.Left == "" || failure.Left != tt.status().Hash {
		t.Errorf("%+v", tt.status())
	}
}

// TestHeldWhileOmniUpgrades checks that a version which is held is the same before, during and after an upgrade that
// somebody else began: the cluster keeps its place among those that wait.
func TestHeldWhileOmniUpgrades(t *testing.T) {
	tt := newTurns(t)
	tt.upgraded(specs.TalosUpgradeStatusSpec_Done, "1.13.2")
	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()

	want := tt.status()

	for _, phase := range []specs.TalosUpgradeStatusSpec_Phase{specs.TalosUpgradeStatusSpec_Upgrading, specs.TalosUpgradeStatusSpec_Done} {
		tt.upgraded(phase, "1.13.2")
		tt.pass(time.Minute)
		tt.run()
		tt.expect(v1alpha1.RolloutHeld, "1.35.0", "")

		if got := tt.status(); got.Hash != want.Hash || !got.HeldSince.Equal(want.HeldSince) || !got.ChangedSince.Equal(want.ChangedSince) {
			t.Errorf("%s: %+v, want %+v", phase, got, want)
		}
	}
}

// TestSuspendedBetweenVersions suspends a cluster between the two writes: nothing is written, and the turn stays.
func TestSuspendedBetweenVersions(t *testing.T) {
	tt := bothBegin(t)
	tt.upgraded(specs.TalosUpgradeStatusSpec_Done, "1.13.3")
	tt.cluster.Spec.Suspend = true
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.35.0", "")

	tt.cluster.Spec.Suspend = false
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")
}

// TestObservedVersionThatWaits has somebody else upgrade Talos in a cluster that is only observed, or suspended: the
// version of its documents is not made afterwards either, and the message does not promise it.
func TestObservedVersionThatWaits(t *testing.T) {
	for reason, change := range map[string]func(*turns){
		v1alpha1.ReasonObserving: func(tt *turns) { tt.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
		v1alpha1.ReasonSuspended: func(tt *turns) { tt.cluster.Spec.Suspend = true },
	} {
		tt := newTurns(t)
		tt.upgraded(specs.TalosUpgradeStatusSpec_Upgrading, "1.13.2")
		tt.ask("v1.35.0", "v1.36.1")
		change(tt)

		if d := tt.decide(); d.Outcome().Reason() != reason || len(d.WaitingForOmni()) > 0 || d.HasChangesToTry() {
			t.Errorf("want %s, got %s, waiting for Omni: %v", reason, d.Outcome().Reason(), d.WaitingForOmni())
		}
	}
}
