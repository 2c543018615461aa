package omnicluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// announced are the events of one result.
func announced(result plan.Result) []string {
	recorder := events.NewFakeRecorder(1000)
	(&reconciler{events: recorder}).announce(newCluster(), result.Taken(), false)
	close(recorder.Events)

	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}

	return got
}

func TestAnnounce(t *testing.T) {
	cluster := plan.Change{Action: plan.ActionUpdate, Type: "Clusters.omni.sidero.dev", ID: "demo"}
	shrink := plan.Change{
		Action: plan.ActionUpdate, Type: "MachineSets.omni.sidero.dev", ID: "demo-w", OldSize: "pool/3", NewSize: "pool/1",
		Destructive: true, Reason: "lowers its machine count",
	}
	patch := plan.Change{Action: plan.ActionDestroy, Type: "ConfigPatches.omni.sidero.dev", ID: "500-by-hand"}
	set := plan.Change{Action: plan.ActionDestroy, Type: plan.TypeMachineSet, ID: "demo-x", Set: "demo-x", Destructive: true, OldSize: "3"}
	set.Reason = "resets the machines of the set"

	got := announced(plan.Result{
		Applied:   []plan.Change{{Action: plan.ActionCreate, Type: "MachineSets.omni.sidero.dev", ID: "demo-n", NewSize: "2"}, cluster, shrink, patch},
		Requested: []plan.Change{patch, set}, Pending: []plan.Change{set}, Held: []plan.Change{set}, Skipped: []plan.Change{cluster},
	})

	want := []string{
		`Normal Updated updated in Omni: MachineSet "demo-w" (pool/3 -> pool/1); destructive: lowers its machine count`,
		`Normal Destroyed destruction requested in Omni: MachineSet "demo-x" (3 -> none); destructive: resets the machines of the set`,
		`Normal Created created in Omni: MachineSet "demo-n" (none -> 2)`,
		`Normal Updated updated in Omni: Cluster "demo"`,
		`Normal Destroyed destruction requested in Omni: ConfigPatch "500-by-hand"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	// The destruction goes on in later runs, and nothing is told again.
	if got := announced(plan.Result{Applied: []plan.Change{set}, Pending: []plan.Change{set}}); got != nil {
		t.Errorf("told again: %q", got)
	}
}

// What somebody else changed in Omni is not told like a change of the documents.
func TestAnnounceCorrections(t *testing.T) {
	recorder := events.NewFakeRecorder(1000)
	(&reconciler{events: recorder}).announce(newCluster(), plan.Result{
		Applied: []plan.Change{
			{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "400-demo"},
			{Action: plan.ActionUpdate, Type: "Clusters.omni.sidero.dev", ID: "demo", Fields: `label "team", features.enableNodeAuditSkip`},
		},
		Requested: []plan.Change{{Action: plan.ActionDestroy, Type: "ConfigPatches.omni.sidero.dev", ID: "500-by-hand"}},
	}.Taken(), true)
	close(recorder.Events)

	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}

	want := []string{
		`Normal Corrected created in Omni: ConfigPatch "400-demo"; it was removed in Omni, and is there again as the documents say`,
		`Normal Corrected updated in Omni: Cluster "demo"; it was changed in Omni, and is again as the documents say: label "team", features.enableNodeAuditSkip`,
		`Normal Destroyed destruction requested in Omni: ConfigPatch "500-by-hand"; it was made in Omni, and the documents do not have it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnnounceIsBounded(t *testing.T) {
	var result plan.Result
	for i := range 60 {
		result.Applied = append(result.Applied, plan.Change{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: fmt.Sprint(i)})
	}

	got := announced(result)
	if len(got) != 21 || got[20] != "Normal Applied 40 more changes in Omni" {
		t.Errorf("%d events, the last is %q", len(got), got[len(got)-1])
	}
}

// Events that differ in their note only are one event for the recorder.
func TestAnnouncementsDifferInMoreThanTheirNote(t *testing.T) {
	seen := map[string]bool{}

	for _, change := range []plan.Change{
		{Action: plan.ActionCreate, Type: "MachineSets.omni.sidero.dev", ID: "a"},
		{Action: plan.ActionCreate, Type: "MachineSets.omni.sidero.dev", ID: "b"},
		{Action: plan.ActionCreate, Type: "ConfigPatches.omni.sidero.dev", ID: "a"},
		{Action: plan.ActionUpdate, Type: "MachineSets.omni.sidero.dev", ID: "a", OldSize: "p/1", NewSize: "p/2"},
		{Action: plan.ActionUpdate, Type: "MachineSets.omni.sidero.dev", ID: "a", OldSize: "p/2", NewSize: "p/3"},
	} {
		said := announcementOf(change)
		seen[said.reason+said.action+said.related.String()] = true
	}

	if len(seen) != 5 {
		t.Errorf("%d of 5 are told apart", len(seen))
	}
}
