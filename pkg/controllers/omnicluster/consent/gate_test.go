package consent

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

func TestChangesWaitForTheirTurn(t *testing.T) {
	tt := newTurns(t)
	tt.wait = closed()
	tt.ask("v1.35.0", "v1.36.1", "v1.13.2", "v1.13.3", "name: demo\n", "name: demo\nlabels: {team: a}\n")

	d := tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", "")

	if diff := cmp.Diff([]string{"update Cluster demo"}, plantest.Lines(d.Done())); diff != "" {
		t.Error(diff)
	}

	reason, message := d.HeldCondition()
	if reason != v1alpha1.ReasonOutsideWindow ||
		message != `2 of 3 changes wait (TalosVersion v1.13.2 -> v1.13.3, KubernetesVersion v1.35.0 -> v1.36.1): until Sat; by OmniRolloutPolicy "fleet", stage "prod" (3 of 3)` {
		t.Errorf("%s: %s", reason, message)
	}

	status := tt.status()
	want := v1alpha1.OmniClusterRollout{
		Governed: true, Policy: "fleet", Stage: "prod", State: v1alpha1.RolloutHeld, Reason: v1alpha1.ReasonOutsideWindow,
		Kinds: []v1alpha1.ChangeKind{"KubernetesVersion", "TalosVersion"},
	}

	if diff := cmp.Diff(want, status, cmpopts.IgnoreFields(want, "Hash", "Changes", "HeldSince", "ChangedSince")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	if status.HeldSince == nil || len(status.Hash) != 64 || len(status.Changes) != 2 {
		t.Errorf("held since %v, hash %q, changes %q; want a time, a SHA-256 and two changes", status.HeldSince, status.Hash, status.Changes)
	}

	// The next run finds nothing to write, in Omni or in the status.
	tt.pass(time.Hour)

	if d = tt.decide(); d.HasChangesToTry() || !cmp.Equal(status, tt.status()) {
		t.Errorf("a second run: may apply %t, %s", d.HasChangesToTry(), cmp.Diff(status, tt.status()))
	}

	shown := d.PlanStatus()
	if shown.Held != 2 || shown.Hash != "" {
		t.Errorf("the plan has %d held changes and the hash %q, want 2 and none", shown.Held, shown.Hash)
	}

	if first := shown.Changes[0]; !first.Held || first.Kind != "TalosVersion" {
		t.Errorf("the first change: held %t, %s; want that of Talos to be held", first.Held, first.Kind)
	}

	// A free turn, and still no ticket.
	tt.wait = Wait{}
	if d = tt.decide(); d.HasChangesToTry() || tt.status().Reason != v1alpha1.ReasonWaitingForTurn {
		t.Errorf("without a ticket: may apply %t, reason %q", d.HasChangesToTry(), tt.status().Reason)
	}
}

func TestTurn(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()
	tt.ticket()

	// The status is stored before anything is written.
	if d := tt.decide(); !d.Unstored() || !d.Begins() {
		t.Fatalf("before the status says so: unstored %t, begins %t", d.Unstored(), d.Begins())
	}

	tt.expect(v1alpha1.RolloutAdmitted, "1.35.0", "")
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")

	// Omni has not noticed yet; then it upgrades; then it is done, and Ready for half a minute.
	tt.pass(time.Second)
	tt.gate.Turn.Since = tt.now
	tt.run()
	tt.gate.Turn.Healthy = false
	tt.run()
	tt.gate.Turn.Healthy = true
	tt.pass(time.Minute - time.Second)
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", "")

	// A newer change waits until the turn is over.
	tt.ask("v1.36.1", "v1.36.2")

	if d := tt.run(); tt.status().Reason != v1alpha1.ReasonTurnNotOver || len(d.WaitingForTurn()) != 1 {
		t.Errorf("a newer change: reason %q, waiting %v", tt.status().Reason, d.WaitingForTurn())
	}

	tt.pass(time.Second)
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.36.1", v1alpha1.RolloutDone)

	// The ticket was for the other change.
	tt.pass(time.Second)
	tt.run()
	tt.expect(v1alpha1.RolloutHeld, "1.36.1", v1alpha1.RolloutDone)
}

func TestTicketsThatCannotBeUsed(t *testing.T) {
	for name, change := range map[string]func(*turns){
		"other changes came":          func(tt *turns) { tt.ask("v1.36.1", "v1.36.2") },
		"the window closed":           func(tt *turns) { tt.wait = closed() },
		"the cluster is not well now": func(tt *turns) { tt.wait = Wait{Reason: v1alpha1.ReasonClusterNotReady, Message: "x"} },
	} {
		for _, stored := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				tt := newTurns(t)
				tt.ask("v1.35.0", "v1.36.1")
				tt.decide()
				tt.ticket()

				hash := tt.status().Hash

				if stored { // the process dies before the write
					tt.decide()
				}

				tt.pass(time.Second)
				change(tt)
				tt.run()

				tt.expect(v1alpha1.RolloutHeld, "1.35.0", v1alpha1.RolloutReturned)

				if last := tt.status().Last; last.Hash != hash {
					t.Errorf("returned %s, the ticket was for %s", last.Hash, hash)
				}

				before := tt.status()
				if tt.run(); !cmp.Equal(before, tt.status()) {
					t.Errorf("again: %s", cmp.Diff(before, tt.status()))
				}
			})
		}
	}
}

func TestFailedTurn(t *testing.T) {
	for name, test := range map[string]struct {
		fail    func(*turns)
		message string
		written string
	}{
		"Omni gave it up": {func(tt *turns) { tt.run(); tt.gate.Turn.Failed, tt.gate.Turn.Healthy = "UpgradeFailed: no", false }, "UpgradeFailed: no", "1.36.1"},
		"too late":        {func(tt *turns) { tt.run(); tt.gate.Turn.Healthy = false; tt.pass(2 * time.Hour) }, "not Ready within 2h0m0s", "1.36.1"},
		"refused": {func(tt *turns) {
			tt.cluster.Status.Refusals = []v1alpha1.RefusedChange{{Action: "Update", Type: plan.TypeCluster, ID: "demo", Message: "no such version"}}
		}, "no such version", "1.35.0"},
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.ask("v1.35.0", "v1.36.1")
			tt.decide()
			tt.ticket()
			tt.decide()
			test.fail(tt)
			tt.decide()

			// What Omni refused is left, and asks for a turn again.
			failed, left := v1alpha1.RolloutFailed, ""
			if test.written == "1.35.0" {
				failed, left = v1alpha1.RolloutHeld, tt.status().Hash
			}

			tt.says("failed", tt.cluster.Status.Rollout, ending{State: failed, Last: v1alpha1.RolloutUnsuccessful, Failure: test.message})

			if got := tt.status().Failure.Left; got != left {
				t.Errorf("left of the turn: %q, want %q", got, left)
			}

			// The ticket is used up.
			tt.cluster.Status.Refusals, tt.gate.Turn.Failed = nil, ""
			tt.wait = Wait{Reason: v1alpha1.ReasonRolloutFailed, Message: "x"}
			tt.run()
			tt.expect(tt.status().State, test.written, v1alpha1.RolloutUnsuccessful)

			// The fix has a turn of its own, and ends the failure.
			tt.ask("v1.36.1", "v1.36.2")
			tt.wait = Wait{}
			tt.decide()
			tt.pass(time.Second)
			tt.ticket()
			tt.run()
			tt.expect(v1alpha1.RolloutAdmitted, "1.36.2", v1alpha1.RolloutUnsuccessful)
			tt.gate.Turn.Healthy, tt.gate.Turn.Since = true, tt.now
			tt.pass(time.Minute)
			tt.run()
			tt.expect("", "1.36.2", v1alpha1.RolloutDone)

			if failure := tt.status().Failure; failure != nil {
				t.Errorf("after the fix the failure stays: %s", failure.Message)
			}
		})
	}
}

// A cluster that is well again, with all that its documents ask for, has not failed any more.
func TestFailureEndsByItself(t *testing.T) {
	tt := newTurns(t)
	tt.begin("v1.35.0", "v1.36.1")
	tt.gate.Turn.Healthy = false
	tt.pass(3 * time.Hour)
	tt.run()
	tt.expect(v1alpha1.RolloutFailed, "1.36.1", v1alpha1.RolloutUnsuccessful)
	tt.gate.Turn.Healthy = true
	tt.run()
	tt.expect("", "1.36.1", v1alpha1.RolloutUnsuccessful)
}

func TestFreeChanges(t *testing.T) {
	for name, gate := range map[string]func(*Gate){
		"no policy":       func(g *Gate) { *g = Gate{} },
		"never Ready":     func(g *Gate) { g.Governed = false },
		"of another kind": func(g *Gate) { g.Gates = func(kind v1alpha1.ChangeKind) bool { return kind == "MachineConfig" } },
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.wait = closed()
			gate(&tt.gate)
			tt.ask("v1.35.0", "v1.36.1")

			d := tt.decide()
			if !d.HasChangesToTry() || d.Unstored() || len(d.WaitingForTurn()) != 0 {
				t.Errorf("may apply %t, the status comes first %t, waiting %v; want it to be applied at once", d.HasChangesToTry(), d.Unstored(), d.WaitingForTurn())
			}

			if d.Begins() || !d.BeginsWithoutTurn() {
				t.Errorf("begins a turn %t, begins without one %t", d.Begins(), d.BeginsWithoutTurn())
			}

			if reason, message := d.HeldCondition(); reason != "" || message != "" {
				t.Errorf("held: %s: %s", reason, message)
			}

			if (d.Rollout() == nil) != (name == "no policy") {
				t.Errorf("status.rollout: %+v", d.Rollout())
			}
		})
	}
}

// What waits for an approval anyway asks for no turn: nobody may ever give it.
func TestApprovalsAskForNoTurn(t *testing.T) {
	tt := newTurns(t)
	tt.cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive
	tt.ask("- "+omnitest.Machine3+"\n", "", "v1.35.0", "v1.36.1")
	d := tt.decide()

	if kinds := tt.status().Kinds; !slices.Equal(kinds, []v1alpha1.ChangeKind{"KubernetesVersion"}) {
		t.Errorf("it asks for a turn for %v", kinds)
	}

	hash := d.Hash()
	if hash == "" {
		t.Fatal("nothing to approve")
	}

	// Approved, it waits for its turn as well, and the hash to approve is the same.
	tt.cluster.Spec.ApprovedPlan = hash
	tt.wait = closed()

	d = tt.decide()
	if kinds := tt.status().Kinds; len(kinds) != 2 {
		t.Errorf("approved, it asks for a turn for %v, want two kinds", kinds)
	}

	removal := d.facts.Plan.Destructive()[0]
	if d.HasChangesToTry() || d.MayDestroy(removal) && d.Admits(removal) {
		t.Errorf("approved, before its turn: may apply %t, may destroy %t, admits %t", d.HasChangesToTry(), d.MayDestroy(removal), d.Admits(removal))
	}

	if d.Hash() != hash {
		t.Errorf("approved, the hash is %q, and was %q", d.Hash(), hash)
	}
}

// A cluster that is suspended, locked or only observed asks for nothing.
func TestStoppedClustersAskForNothing(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()
	tt.ticket()
	tt.decide()
	tt.cluster.Spec.Suspend = true
	tt.decide()
	tt.expect("", "1.35.0", v1alpha1.RolloutReturned)

	if status := tt.status(); status.Hash != "" || status.HeldSince != nil {
		t.Errorf("suspended, it asks for a turn: hash %q, held since %v", status.Hash, status.HeldSince)
	}

	// What was written goes on.
	tt.cluster.Spec.Suspend = false
	tt.pass(time.Minute)
	tt.decide()
	tt.ticket()
	tt.run()
	tt.cluster.Spec.Suspend = true
	tt.run()
	tt.expect(v1alpha1.RolloutAdmitted, "1.36.1", v1alpha1.RolloutReturned)
}

// What failed under one policy does not stop another one.
func TestFailureBelongsToItsPolicy(t *testing.T) {
	tt := newTurns(t)
	tt.begin("v1.35.0", "v1.36.1")
	tt.gate.Turn.Healthy = false
	tt.pass(3 * time.Hour)
	tt.run()
	tt.expect(v1alpha1.RolloutFailed, "1.36.1", v1alpha1.RolloutUnsuccessful)

	tt.gate.Policy, tt.gate.Ticket = "another", nil
	tt.run()

	if failure := tt.status().Failure; failure != nil {
		t.Errorf("under another policy the failure stays: %s", failure.Message)
	}
}

// The last look before the first write of a turn, past every cache.
func TestMayBegin(t *testing.T) {
	used := metav1.Time{Time: time.Unix(0, 0)}

	for name, test := range map[string]struct {
		now  func(now *turns, decided *v1alpha1.OmniClusterRollout)
		want bool
	}{
		"nothing has changed":      {func(*turns, *v1alpha1.OmniClusterRollout) {}, true},
		"the ticket is gone":       {func(now *turns, _ *v1alpha1.OmniClusterRollout) { now.gate.Ticket = nil }, false},
		"the ticket is for others": {func(now *turns, _ *v1alpha1.OmniClusterRollout) { now.gate.Ticket.Hash = "other" }, false},
		"the window has closed":    {func(now *turns, _ *v1alpha1.OmniClusterRollout) { now.wait = closed() }, false},
		"another stage":            {func(now *turns, _ *v1alpha1.OmniClusterRollout) { now.gate.Stage = "test" }, false},
		"another policy":           {func(now *turns, _ *v1alpha1.OmniClusterRollout) { now.gate.Policy = "other" }, false},
		"overridden since": {func(now *turns, _ *v1alpha1.OmniClusterRollout) {
			now.gate.Ticket = nil
			now.override()
		}, true},
		"an override that was used": {func(now *turns, _ *v1alpha1.OmniClusterRollout) {
			now.gate.Ticket = nil
			now.override()
			now.cluster.Status.Rollout.Override.UsedTime = &used
		}, false},
		"an override that this decision uses up": {func(now *turns, decided *v1alpha1.OmniClusterRollout) {
			now.gate.Ticket = nil
			now.override()
			decided.Override = now.cluster.Status.Rollout.Override.DeepCopy()
			decided.Override.UsedTime = &used
		}, false},
		"an override that this decision has": {func(now *turns, decided *v1alpha1.OmniClusterRollout) {
			now.gate.Ticket = nil
			now.override()
			decided.Override = now.cluster.Status.Rollout.Override.DeepCopy()
		}, true},
		"no status any more": {func(now *turns, _ *v1alpha1.OmniClusterRollout) {
			now.gate.Ticket = nil
			now.cluster.Status.Rollout = nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTurns(t)
			tt.ask("v1.35.0", "v1.36.1")
			tt.decide()
			tt.ticket()

			d := tt.decide()
			if !d.Begins() || d.BeginsWithoutTurn() || d.HasBegun() {
				t.Fatalf("begins %t, without a turn %t, has begun %t", d.Begins(), d.BeginsWithoutTurn(), d.HasBegun())
			}

			tt.cluster.Status.Rollout = tt.cluster.Status.Rollout.DeepCopy()
			test.now(tt, d.Rollout())

			if got := d.MayBegin(tt.cluster, tt.gate); got != test.want {
				t.Errorf("may begin %t, want %t", got, test.want)
			}
		})
	}

	// What has begun goes on without its ticket.
	tt := newTurns(t)
	tt.begin("v1.35.0", "v1.36.1")
	tt.gate.Ticket = nil

	if d := tt.decide(); !d.HasBegun() || !d.MayBegin(tt.cluster, tt.gate) {
		t.Errorf("has begun %v", d.HasBegun())
	}
}

// What Omni destroys already waits for no turn, and is no reason to look for a policy; nor is what waits.
func TestWhatHasBegunNeedsNoTurn(t *testing.T) {
	begun := teardown("begun", time.Unix(0, 0))
	begun.Kind, begun.TearingDown = v1alpha1.ChangeMachineRemoval, true

	waits := plan.Change{Action: plan.ActionUpdate, Type: "Clusters.omni.sidero.dev", ID: "demo", Kind: v1alpha1.ChangeKubernetesVersion}
	free := plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "free"}
	all := Gate{
		Policy: "fleet", Governed: true, Gates: func(v1alpha1.ChangeKind) bool { return true },
		Judge: func(v1alpha1.OmniClusterRollout) Wait { return closed() },
	}

	d := Decide(Facts{Cluster: newCluster(), Plan: planned(begun, free, waits), Gate: all, Now: time.Unix(100, 0)})
	if !d.Admits(begun) || !d.Admits(free) || d.Admits(waits) {
		t.Errorf("begun %v, free %v, waits %v", d.Admits(begun), d.Admits(free), d.Admits(waits))
	}

	if Decide(Facts{Cluster: newCluster(), Plan: planned(begun, free)}).BeginsWithoutTurn() {
		t.Error("nothing of it needs a turn")
	}

	suspended := newCluster()
	suspended.Spec.Suspend = true

	if Decide(Facts{Cluster: suspended, Plan: planned(waits)}).BeginsWithoutTurn() {
		t.Error("nothing begins")
	}
}

// A turn that only destroys has begun when Omni has, and is over when nothing of it is left.
func TestTurnOfADestruction(t *testing.T) {
	removal := plan.Change{Action: plan.ActionDestroy, Type: "MachineSetNodes.omni.sidero.dev", ID: "m1", Kind: v1alpha1.ChangeMachineRemoval, Destructive: true}
	begun := removal
	begun.TearingDown = true

	now := time.Unix(10000, 0)
	admitted := metav1.Time{Time: now.Add(-time.Hour)}

	for name, test := range map[string]struct {
		plan     *plan.Plan
		hasBegun bool
		differ   bool // the clocks do
		state    v1alpha1.RolloutState
		last     v1alpha1.RolloutOutcome
	}{
		"it has not begun":               {planned(removal), false, false, "", v1alpha1.RolloutReturned},
		"it has begun":                   {planned(begun), true, false, v1alpha1.RolloutAdmitted, ""},
		"it is over":                     {planned(), true, false, "", v1alpha1.RolloutDone},
		"it is over, and nobody can say": {planned(), true, true, v1alpha1.RolloutAdmitted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster()
			digest := Decision{facts: Facts{Cluster: cluster}}.salted(removal)
			cluster.Status.Rollout = &v1alpha1.OmniClusterRollout{
				Governed: true, Policy: "fleet", State: v1alpha1.RolloutAdmitted, Hash: "hash", Changes: []string{digest}, AdmittedSince: &admitted,
			}
			gate := Gate{
				Policy: "fleet", Governed: true, Gates: func(v1alpha1.ChangeKind) bool { return true },
				Judge: func(v1alpha1.OmniClusterRollout) Wait { return Wait{} },
				Turn:  Turn{Healthy: true, Since: admitted.Time, Tried: now.Add(-30 * time.Minute), ReadyTime: time.Minute, Deadline: 2 * time.Hour, ClocksDiffer: test.differ},
			}

			d := Decide(Facts{Cluster: cluster, Plan: test.plan, Gate: gate, Now: now})

			var last v1alpha1.RolloutOutcome
			if d.Rollout().Last != nil {
				last = d.Rollout().Last.Result
			}

			if d.HasBegun() != test.hasBegun || d.Rollout().State != test.state || last != test.last {
				t.Errorf("has begun %v, state %q, last %q", d.HasBegun(), d.Rollout().State, last)
			}
		})
	}
}

// The order in which a plan names the changes makes no other turn of them: the ticket is for their hash.
func TestHashOfATurnHasNoOrder(t *testing.T) {
	one, two := create("one"), create("two")
	one.Kind, two.Kind, one.Digest, two.Digest = v1alpha1.ChangeMachineConfig, v1alpha1.ChangeMachineConfig, "1", "2"
	gate := Gate{
		Policy: "fleet", Governed: true, Gates: func(v1alpha1.ChangeKind) bool { return true },
		Judge: func(v1alpha1.OmniClusterRollout) Wait { return closed() },
	}

	first := Decide(Facts{Cluster: newCluster(), Plan: planned(one, two), Gate: gate}).Rollout()
	second := Decide(Facts{Cluster: newCluster(), Plan: planned(two, one), Gate: gate}).Rollout()

	if first.Hash == "" || first.Hash != second.Hash || !slices.Equal(first.Changes, second.Changes) {
		t.Errorf("%q and %q", first.Hash, second.Hash)
	}
}

// A turn that was given back says nothing about the failure before it; without a policy there is no failure any more.
func TestFailureOutlastsATurnThatReturns(t *testing.T) {
	tt := newTurns(t)
	tt.ask("v1.35.0", "v1.36.1")
	tt.decide()
	tt.ticket()
	tt.decide()
	tt.cluster.Status.Rollout.Failure = &v1alpha1.RolloutFailure{Hash: "older", Message: "x"}
	tt.gate.Ticket = nil
	tt.decide()
	tt.expect(v1alpha1.RolloutHeld, "1.35.0", v1alpha1.RolloutReturned)

	if tt.status().Failure == nil {
		t.Error("the failure is forgotten")
	}

	tt.gate = Gate{}
	tt.decide()

	if status := tt.status(); status.Failure != nil || !status.Governed {
		t.Errorf("without a policy: failure %v, governed %t", status.Failure, status.Governed)
	}
}
