package consent

import (
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestJoining(t *testing.T) {
	const settleTime = 2 * time.Second

	start := time.Unix(1000, 0)

	// Each step is a run with the documents that it finds, some time after the start.
	type step struct {
		at        time.Duration
		documents string
		joins     bool // machines are to join
		may       bool // and may
	}

	// edits are runs that each find other documents, a second apart.
	edits := func(from, to time.Duration, joins, may bool) (steps []step) {
		for at := from; at < to; at += time.Second {
			steps = append(steps, step{at, at.String(), joins, may})
		}

		return steps
	}

	for name, steps := range map[string][]step{
		"the first look of a process": {{0, "a", true, false}, {1999 * time.Millisecond, "a", true, false}, {2 * time.Second, "a", true, true}},
		"they arrive one by one": {
			{0, "a", false, false}, {time.Second, "ab", true, false}, {2 * time.Second, "abc", true, false}, {3 * time.Second, "abc", true, false},
			{4 * time.Second, "abc", true, true}, {5 * time.Second, "abc", true, true},
		},
		"nothing changed for long":  {{0, "a", false, false}, {time.Hour, "a", true, true}},
		"an edit after a long time": {{0, "a", false, false}, {time.Hour, "b", true, false}, {time.Hour + 2*time.Second, "b", true, true}},
		"a machine that was already waiting, and another edit": {
			{0, "a", true, false}, {2 * time.Second, "a", true, true}, {3 * time.Second, "b", true, false}, {5 * time.Second, "b", true, true},
		},
		"they change all the time": slices.Concat(edits(0, 30*time.Second, true, false), edits(30*time.Second, 31*time.Second, true, true)),
		"the run at the end comes late, and finds another change": slices.Concat(
			edits(0, 25*time.Second, true, false), []step{{34 * time.Second, "b", true, true}, {34 * time.Second, "b", true, true}}),
		"they change all the time, and Omni refuses the machine": slices.Concat(
			edits(0, 30*time.Second, true, false), edits(30*time.Second, 31*time.Second, true, true),
			edits(31*time.Second, 61*time.Second, true, false), edits(61*time.Second, 62*time.Second, true, true)),
		"edits before there are machines do not count": slices.Concat(
			edits(0, time.Minute, false, false), edits(time.Minute, 90*time.Second, true, false), edits(90*time.Second, 91*time.Second, true, true)),
	} {
		t.Run(name, func(t *testing.T) {
			var joining Joining

			for _, run := range steps {
				joining = joining.next(run.documents, run.joins, start.Add(run.at), settleTime)
				if run.joins && joining.open != run.may {
					t.Fatalf("after %s, with %q: machines may join: %v, want %v", run.at, run.documents, joining.open, run.may)
				}
			}
		})
	}

	if now := (Joining{}).next("a", true, start, 0); !now.open {
		t.Error("without a settle time machines wait")
	}
}

// What waits for documents, and what waits with it.
func TestMachinesWaitForDocuments(t *testing.T) {
	now := time.Unix(1000, 0)
	node := plan.Change{Action: plan.ActionCreate, Type: plan.TypeMachineSetNode, ID: "m1", Set: "demo-w", Machine: "m1"}
	class := plan.Change{Action: plan.ActionCreate, Type: plan.TypeMachineSet, ID: "demo-c", Set: "demo-c", NewSize: "pool/3"}
	grows := plan.Change{Action: plan.ActionUpdate, Type: plan.TypeMachineSet, ID: "demo-c", Set: "demo-c", OldSize: "pool/3", NewSize: "pool/4"}
	set := plan.Change{Action: plan.ActionCreate, Type: plan.TypeMachineSet, ID: "demo-w", Set: "demo-w", NewSize: "1"}
	patch := plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "patch"}
	gone := plan.Change{
		Action: plan.ActionDestroy, Type: plan.TypeMachineSetNode, ID: "m0", Set: "demo-w", Machine: "m0", Destructive: true, Created: now,
	}
	begun := gone
	begun.TearingDown = true
	record := v1alpha1.OmniClusterStatus{AppliedMachineSets: []v1alpha1.AppliedMachineSet{{ID: "demo-w", Machines: []string{"m0"}}}}

	for name, test := range map[string]struct {
		changes []plan.Change
		policy  v1alpha1.ChangePolicy
		still   bool // the documents are
		settled bool
		held    []string // the holds of the changes
		reason  string
		tries   bool
	}{
		"a machine":                         {[]plan.Change{node}, "", false, false, []string{"documents"}, "WaitingForDocuments", false},
		"a machine, documents are still":    {[]plan.Change{node}, "", true, false, []string{""}, "", true},
		"its set and its patches go ahead":  {[]plan.Change{patch, set, node}, "", false, false, []string{"", "", "documents"}, "WaitingForDocuments", true},
		"a set of a class":                  {[]plan.Change{class}, "", false, false, []string{"documents"}, "WaitingForDocuments", false},
		"more machines of a class":          {[]plan.Change{grows}, "", false, false, []string{"documents"}, "WaitingForDocuments", false},
		"no machine":                        {[]plan.Change{patch, set}, "", false, false, []string{"", ""}, "", true},
		"a machine that goes, not settled":  {[]plan.Change{node, gone}, "", false, false, []string{"documents", "settling"}, "WaitingToSettle", true},
		"a machine that goes, settled":      {[]plan.Change{node, gone}, "", false, true, []string{"documents", "documents"}, "WaitingForDocuments", false},
		"a machine that goes alone":         {[]plan.Change{gone}, "", false, true, []string{""}, "", true},
		"a machine whose removal has begun": {[]plan.Change{node, begun}, "", false, true, []string{"documents", ""}, "WaitingForDocuments", true},
		"observed":                          {[]plan.Change{node}, v1alpha1.ChangePolicyObserve, false, false, []string{"observed"}, "Observing", false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster()
			cluster.Spec.ChangePolicy, cluster.Status = test.policy, record

			facts := Facts{
				Cluster: cluster, Claim: Claim{Live: omni.Live{Exists: true}}, Plan: planned(test.changes...), SettleTime: 10 * time.Second, Now: now,
				Documents: "a", JoinSettleTime: 2 * time.Second, Joining: Joining{}.next("a", true, now.Add(-time.Second), 2*time.Second),
			}
			if test.still {
				facts.Joining = Joining{}.next("a", true, now.Add(-2*time.Second), 2*time.Second)
			}

			if test.settled {
				facts.Settling = Settling{uid: cluster.UID, keys: []string{gone.Key()}, settled: true}
			}

			got := Decide(facts)
			names := map[Hold]string{HoldDocuments: "documents", HoldSettling: "settling", HoldObserved: "observed"}

			var held []string
			for _, item := range got.Items {
				held = append(held, names[item.Hold])
			}

			if diff := gocmp.Diff(test.held, held); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}

			outcome := got.Outcome()
			if outcome.Reason() != test.reason || got.HasChangesToTry() != test.tries {
				t.Errorf("%s: %s; tries %v", outcome.Reason(), outcome.Message(), got.HasChangesToTry())
			}

			if test.held[0] == "documents" && outcome.After() != time.Second {
				t.Errorf("looks again after %s", outcome.After())
			}

			for i, change := range test.changes {
				if admits := got.Admits(change) && (!change.Destructive || change.TearingDown || got.MayDestroy(change)); admits != (test.held[i] == "") && test.held[i] != "observed" {
					t.Errorf("%s: an apply makes it: %v", change, admits)
				}
			}
		})
	}
}

// What is read while machines wait.
func TestMessageOfMachinesThatWait(t *testing.T) {
	begin := time.Date(2026, 11, 28, 22, 30, 3, 1, time.UTC)
	node := plan.Change{Action: plan.ActionCreate, Type: plan.TypeMachineSetNode, ID: "m1", Set: "demo-w", Machine: "m1"}

	got := Decide(Facts{Cluster: newCluster(), Plan: planned(node), Now: begin, Documents: "a", JoinSettleTime: 2 * time.Second}).Outcome().Message()
	if want := `documents of the cluster may still arrive: so that a machine has its settings before it joins, these changes wait until ` +
		`2026-11-28T22:30:06Z, or until 2026-11-28T22:30:34Z at the latest if documents go on changing: MachineSetNode "m1"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
