package consent

import (
	"fmt"
	"slices"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// What a policy held stays held when it does not select the cluster any more; other changes are free.
func TestLeftPolicy(t *testing.T) {
	tt := newTurns(t)
	tt.wait = closed()
	tt.ask("v1.35.0", "v1.36.1")
	tt.run()

	tt.gate.OnlyBefore, tt.wait = true, Wait{Reason: v1alpha1.ReasonLeftPolicy, Message: "x"}
	tt.ask("v1.13.2", "v1.13.3")

	if d := tt.decide(); !d.BeginsWithoutTurn() || d.Begins() {
		t.Error("nobody looks for a new policy before the other changes begin")
	}

	d := tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", "")

	if len(d.Done()) != 1 || d.Done()[0].Part != "TalosVersion" {
		t.Errorf("done: %v", d.Done())
	}

	// The policy is gone.
	tt.gate = Gate{}
	tt.run()
	tt.expect("", "1.36.1", "")
}

// What was held stays held after the policy is left, although the change cannot be made for another reason meanwhile.
func TestLeftPolicyAndAnotherHold(t *testing.T) {
	upgrade := []string{"v1.35.0", "v1.36.1"}
	removal := []string{"- " + omnitest.Machine3 + "\n", ""}

	for name, tt := range map[string]struct {
		ask          []string
		begin, after func(*turns)
	}{
		"suspended": {upgrade,
			func(tt *turns) { tt.cluster.Spec.Suspend = true },
			func(tt *turns) { tt.cluster.Spec.Suspend = false }},
		"observed": {upgrade,
			func(tt *turns) { tt.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
			func(tt *turns) { tt.cluster.Spec.ChangePolicy = "" }},
		"the process starts again, so a removal settles": {removal,
			func(tt *turns) { tt.settling = Settling{} },
			func(tt *turns) { tt.pass(2 * settleTime) }},
		"an approval is missing": {removal,
			func(tt *turns) { tt.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive },
			func(tt *turns) {
				tt.cluster.Spec.ChangePolicy = ""
				tt.unselect()
				tt.run()
				tt.pass(2 * settleTime)
			}},
	} {
		for _, leaves := range []string{"before", "meanwhile"} {
			t.Run(name+", left "+leaves, func(t *testing.T) {
				run := newTurns(t)
				run.wait = closed()
				run.ask(tt.ask...)
				run.run()
				run.pass(2 * settleTime)
				run.run()

				if run.status().State != v1alpha1.RolloutHeld {
					t.Fatalf("not held: %+v", run.status())
				}

				held := run.status().Changes

				if leaves == "before" {
					run.unselect()
					run.run()
				}

				tt.begin(run)
				run.run()
				run.unselect()
				run.run()
				tt.after(run)

				for range 2 {
					run.unselect()

					if d := run.run(); len(d.Done()) > 0 || len(d.WaitingForTurn()) != 1 {
						t.Errorf("done %v, waiting %v (%+v)", d.Done(), d.WaitingForTurn(), run.status())
					}
				}

				if status := run.status(); status.State != v1alpha1.RolloutHeld || !slices.Equal(status.Changes, held) {
					t.Errorf("%+v", status)
				}
			})
		}
	}
}

// Held changes that are no longer asked for are not kept.
func TestLeftPolicyForgets(t *testing.T) {
	tt := newTurns(t)
	tt.wait = closed()
	tt.ask("v1.35.0", "v1.36.1")
	tt.run()
	tt.unselect()
	tt.ask("v1.36.1", "v1.35.0")
	tt.run()

	if rollout.StillConcerns(tt.cluster.Status.Rollout) {
		t.Errorf("%+v", tt.status())
	}
}

// More changes than one turn covers stay held, too.
func TestLeftPolicyWithMoreThanATurn(t *testing.T) {
	tt := newTurns(t)
	tt.wait = closed()
	tt.ask("v1.35.0", "v1.36.1")
	tt.run()

	// As if 256 other changes had come first.
	for i := range maxGated {
		tt.cluster.Status.Rollout.Changes = append(tt.cluster.Status.Rollout.Changes[:i], fmt.Sprintf("%016d", i))
	}

	tt.unselect()

	if d := tt.run(); len(d.Done()) > 0 || len(d.WaitingForTurn()) != 1 {
		t.Errorf("done %v (%+v)", d.Done(), tt.status())
	}
}
