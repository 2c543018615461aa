package consent

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

const (
	setType  = "MachineSets.omni.sidero.dev"
	nodeType = "MachineSetNodes.omni.sidero.dev"
)

func TestRecordIsUpdated(t *testing.T) {
	create := func(kind, id string) plan.Change { return plan.Change{Action: plan.ActionCreate, Type: kind, ID: id} }
	update := func(kind, id string) plan.Change { return plan.Change{Action: plan.ActionUpdate, Type: kind, ID: id} }
	destroy := func(kind, id string) plan.Change { return plan.Change{Action: plan.ActionDestroy, Type: kind, ID: id} }
	static := func(id string, machines ...string) plan.SetState { return plan.SetState{ID: id, Machines: machines} }
	class := func(id, size string) plan.SetState { return plan.SetState{ID: id, Size: size} }
	states := func(states ...plan.SetState) []plan.SetState { return states }

	for name, test := range map[string]struct {
		before       appliedRecord
		wanted, live []plan.SetState
		left         []plan.Change
		stands       bool // nothing new is recorded
		want         appliedRecord
	}{
		"nothing": {},
		"everything is as wanted, and nothing was recorded": {
			wanted: states(class("w", "pool/2"), static("cp", "m2", "m1")), live: states(static("cp", "m1", "m2"), class("w", "pool/2")),
			want: appliedRecord{{ID: "cp", Machines: []string{"m1", "m2"}}, {ID: "w", Size: "pool/2"}},
		},
		"made in this run": {
			wanted: states(static("cp", "m1")), want: appliedRecord{{ID: "cp", Machines: []string{"m1"}}},
		},
		"not made yet": {wanted: states(static("cp", "m1")), left: []plan.Change{create(setType, "cp"), create(nodeType, "m1")}},
		"a machine is not there yet": {
			wanted: states(static("cp", "m1", "m2")), live: states(static("cp", "m1")), left: []plan.Change{create(nodeType, "m2")},
			want: appliedRecord{{ID: "cp", Machines: []string{"m1"}}},
		},
		"somebody's set that no document wants": {live: states(static("theirs", "m9"), class("other", "pool/3"))},
		"somebody's machine in our set": {
			before: appliedRecord{{ID: "w", Machines: []string{"m1"}}}, wanted: states(static("w", "m1")), live: states(static("w", "m1", "m9")),
			left: []plan.Change{destroy(nodeType, "m9")}, want: appliedRecord{{ID: "w", Machines: []string{"m1"}}},
		},
		"no document wants it any more, Omni still has it": {
			before: appliedRecord{{ID: "w", Machines: []string{"m1", "m2"}}}, live: states(static("w", "m1")),
			left: []plan.Change{destroy(setType, "w")}, want: appliedRecord{{ID: "w", Machines: []string{"m1"}}},
		},
		"destroyed in this run": {
			before: appliedRecord{{ID: "a", Machines: []string{"m1", "m2"}}, {ID: "w", Machines: []string{"m3"}}},
			wanted: states(static("a", "m1")), live: states(static("a", "m1", "m2"), static("w", "m3")),
			want: appliedRecord{{ID: "a", Machines: []string{"m1"}}},
		},
		"gone":                  {before: appliedRecord{{ID: "w", Machines: []string{"m1"}}}},
		"gone, and wanted anew": {before: appliedRecord{{ID: "w", Size: "pool/2"}}, wanted: states(class("w", "pool/2")), left: []plan.Change{create(setType, "w")}},
		"a size that is not applied yet": {
			before: appliedRecord{{ID: "w", Size: "pool/3"}}, wanted: states(class("w", "pool/1")), live: states(class("w", "pool/3")),
			left: []plan.Change{update(setType, "w")}, want: appliedRecord{{ID: "w", Size: "pool/3"}},
		},
		"scaled in Omni": {
			before: appliedRecord{{ID: "w", Size: "pool/3"}}, wanted: states(class("w", "pool/3")), live: states(class("w", "pool/9")),
			left: []plan.Change{update(setType, "w")}, want: appliedRecord{{ID: "w", Size: "pool/3"}},
		},
		"scaled in Omni, never recorded": {
			wanted: states(class("w", "pool/3")), live: states(class("w", "pool/9")), left: []plan.Change{update(setType, "w")},
		},
		"a size that was applied in this run": {
			before: appliedRecord{{ID: "w", Size: "pool/3"}}, wanted: states(class("w", "pool/5")), live: states(class("w", "pool/3")),
			want: appliedRecord{{ID: "w", Size: "pool/5"}},
		},
		"a machine that was added, and a size that was refused": {
			before: appliedRecord{{ID: "w", Machines: []string{"m1"}}}, wanted: states(static("w", "m1", "m2")), live: states(static("w", "m1", "m2")),
			left: []plan.Change{update(setType, "w")}, want: appliedRecord{{ID: "w", Machines: []string{"m1", "m2"}}},
		},
		"suspended: what is wanted and there stays": {
			before: appliedRecord{{ID: "w", Machines: []string{"m1", "m2"}}}, stands: true,
			wanted: states(static("w", "m1")), live: states(static("w", "m1", "m2")), want: appliedRecord{{ID: "w", Machines: []string{"m1"}}},
		},
		"a machine on its way to another set": {
			before: appliedRecord{{ID: "a", Machines: []string{"m1"}}, {ID: "b", Machines: []string{"m2"}}},
			wanted: states(static("a"), static("b", "m1", "m2")), live: states(static("a", "m1"), static("b", "m2")),
			left: []plan.Change{destroy(nodeType, "m1"), create(nodeType, "m1")},
			want: appliedRecord{{ID: "a", Machines: []string{"m1"}}, {ID: "b", Machines: []string{"m2"}}},
		},
		"a machine that has moved": {
			before: appliedRecord{{ID: "a", Machines: []string{"m1"}}, {ID: "b", Machines: []string{"m2"}}},
			wanted: states(static("a"), static("b", "m1", "m2")), live: states(static("a"), static("b", "m2", "m1")),
			want: appliedRecord{{ID: "a"}, {ID: "b", Machines: []string{"m1", "m2"}}},
		},
		"from a class to listed machines, held": {
			before: appliedRecord{{ID: "w", Size: "pool/2"}}, wanted: states(static("w", "m1")), live: states(class("w", "pool/2")),
			left: []plan.Change{update(setType, "w"), create(nodeType, "m1")}, want: appliedRecord{{ID: "w", Size: "pool/2"}},
		},
		"a set comes back while it is torn down": {
			before: appliedRecord{{ID: "w", Size: "pool/2"}}, wanted: states(class("w", "pool/4")), live: states(class("w", "pool/2")),
			left: []plan.Change{update(setType, "w"), destroy(setType, "w")}, want: appliedRecord{{ID: "w", Size: "pool/2"}},
		},
		"suspended: nothing new": {
			before: appliedRecord{{ID: "gone", Size: "pool/1"}, {ID: "w", Size: "pool/2"}}, stands: true,
			left:   []plan.Change{destroy(setType, "theirs")},
			wanted: states(class("w", "pool/2"), static("cp", "m1")), live: states(class("w", "pool/2"), static("cp", "m1")),
			want: appliedRecord{{ID: "w", Size: "pool/2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.before.updated(test.wanted, test.live, test.left, growth{all: !test.stands})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff(got, got.updated(test.wanted, test.live, test.left, growth{all: !test.stands})); diff != "" && len(test.live) > 0 {
				t.Errorf("a second time: %s", diff)
			}
		})
	}
}

func TestRecordKnowsWhatIsForeign(t *testing.T) {
	record := appliedRecord{{ID: "demo-class", Size: "pool/3"}, {ID: "demo-listed", Machines: []string{"m1", "m2"}}}
	live := []plan.SetState{{ID: "demo-class", Size: "pool/3"}, {ID: "demo-listed", Machines: []string{"m1", "m2"}}}
	crowded := []plan.SetState{{ID: "demo-class", Size: "pool/8"}, {ID: "demo-listed", Machines: []string{"m1", "m9"}}}

	node := func(set, machine string) plan.Change {
		return plan.Change{Action: plan.ActionDestroy, Type: nodeType, ID: machine, Set: set, Destructive: true}
	}
	shrink := func(set, from string) plan.Change {
		return plan.Change{Action: plan.ActionUpdate, Type: setType, ID: set, Set: set, Destructive: true, OldSize: from, NewSize: "pool/1"}
	}

	for name, test := range map[string]struct {
		record appliedRecord
		change plan.Change
		live   []plan.SetState
		want   string
	}{
		"our set":                      {record, teardown("demo-listed", time.Time{}), live, ""},
		"our class set":                {record, teardown("demo-class", time.Time{}), live, ""},
		"somebody's set":               {record, teardown("demo-theirs", time.Time{}), live, "not made by this object"},
		"no record":                    {nil, teardown("demo-listed", time.Time{}), live, "not made by this object"},
		"our set with their machine":   {record, teardown("demo-listed", time.Time{}), crowded, "holds machine m9, which this object did not put there"},
		"our set that they scaled":     {record, teardown("demo-class", time.Time{}), crowded, "sized pool/8 in Omni, not pool/3 as this object last applied"},
		"our machine":                  {record, node("demo-listed", "m1"), live, ""},
		"their machine":                {record, node("demo-listed", "m9"), live, "not put there by this object"},
		"our machine in another set":   {record, node("demo-class", "m1"), live, "not put there by this object"},
		"a machine of somebody's set":  {record, node("demo-theirs", "m1"), live, "not made by this object"},
		"our size":                     {record, shrink("demo-class", "pool/3"), live, ""},
		"their size":                   {record, shrink("demo-class", "pool/8"), live, "sized pool/8 in Omni, not pool/3 as this object last applied"},
		"their class on listed":        {record, shrink("demo-listed", "pool/8"), live, "sized pool/8 in Omni, not by listed machines as this object last applied"},
		"their set's size":             {record, shrink("demo-theirs", "pool/8"), live, "not made by this object"},
		"what holds no machines":       {record, plan.Change{Action: plan.ActionDestroy, Type: "ConfigPatches.omni.sidero.dev", ID: "p", Destructive: true}, live, "not made by this object"},
		"what holds no machines, ours": {record, plan.Change{Action: plan.ActionDestroy, Type: "ConfigPatches.omni.sidero.dev", ID: "p", Set: "demo-class", Destructive: true}, live, "not made by this object"},
		"a cluster":                    {record, plan.Change{Action: plan.ActionDestroy, Type: "Clusters.omni.sidero.dev", ID: "demo", Destructive: true}, live, "not made by this object"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.record.foreign(test.change, test.live); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// What a run created is recorded, also if the documents say something else by now. The size of a set that was there is not.
func TestRecordOfWhatARunCreated(t *testing.T) {
	create := func(kind, id string) plan.Change { return plan.Change{Action: plan.ActionCreate, Type: kind, ID: id} }
	resize := plan.Change{Action: plan.ActionUpdate, Type: plan.TypeMachineSet, ID: "w", OldSize: "pool/3", NewSize: "pool/5"}
	made := []plan.Change{
		create(plan.TypeMachineSet, "new"), create(plan.TypeMachineSetNode, "m1"), create(plan.TypeMachineSetNode, "m3"), create(plan.TypeManifestGroup, "g"),
	}
	changes := append(slices.Clone(made), resize, create(plan.TypeMachineSet, "refused"))

	cluster := newCluster()
	cluster.Status.AppliedMachineSets = []v1alpha1.AppliedMachineSet{{ID: "listed", Machines: []string{"m2"}}, {ID: "w", Size: "pool/3"}}

	d := Decide(Facts{Cluster: cluster, Plan: &plan.Plan{
		Changes: changes,
		Wanted: []plan.SetState{
			{ID: "listed", Machines: []string{"m2", "m3", "m4"}}, {ID: "new", Machines: []string{"m1"}}, {ID: "refused", Size: "pool/1"}, {ID: "theirs"}, {ID: "w", Size: "pool/5"},
		},
		Live:            []plan.SetState{{ID: "listed", Machines: []string{"m2", "m4"}}, {ID: "theirs"}, {ID: "w", Size: "pool/3"}},
		WantedManifests: []string{"g", "h"}, LiveManifests: []string{"h"},
	}}).After(plan.Result{Applied: append(made, resize), Skipped: changes[len(changes)-1:]}, nil)

	got := d.NextRecord(false)
	want := Record{
		sets:      appliedRecord{{ID: "listed", Machines: []string{"m2", "m3"}}, {ID: "new", Machines: []string{"m1"}}, {ID: "w", Size: "pool/3"}},
		manifests: manifestRecord{"g"},
	}

	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Record{})); diff != "" {
		t.Error(diff)
	}
}

func TestRecordExceeds(t *testing.T) {
	before := appliedRecord{{ID: "c-w", Size: "large/3"}, {ID: "c-control-planes", Machines: []string{"a", "b"}}}

	for _, test := range []struct {
		name  string
		after appliedRecord
		want  bool
	}{
		{"the same", before, false},
		{"a set less", before[:1], false},
		{"a machine less", appliedRecord{{ID: "c-control-planes", Machines: []string{"a"}}}, false},
		{"another set", appliedRecord{{ID: "c-x"}}, true},
		{"another machine", appliedRecord{{ID: "c-control-planes", Machines: []string{"a", "c"}}}, true},
		{"another size", appliedRecord{{ID: "c-w", Size: "large/2"}}, true},
	} {
		if got := test.after.exceeds(before); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// What an object made of one cluster is no permission for the cluster that took its place.
func TestRecordIsOfOneCluster(t *testing.T) {
	status := v1alpha1.OmniClusterStatus{
		OmniClusterID: "id", AppliedMachineSets: []v1alpha1.AppliedMachineSet{{ID: "w", Size: "3"}}, AppliedManifests: []string{"m"},
	}
	untold := status
	untold.OmniClusterID = ""

	for name, test := range map[string]struct {
		status v1alpha1.OmniClusterStatus
		live   omni.Live
		counts bool
	}{
		"the same cluster":           {status, omni.Live{Exists: true, UUID: "id"}, true},
		"another one":                {status, omni.Live{Exists: true, UUID: "new"}, false},
		"Omni has not told which":    {status, omni.Live{Exists: true}, false},
		"its ID was not written yet": {untold, omni.Live{Exists: true, UUID: "id"}, true},
	} {
		record := RecordOf(test.status, test.live)
		if (record.foreign(teardown("w", time.Time{}), &plan.Plan{Live: []plan.SetState{{ID: "w", Size: "3"}}}) == "") != test.counts {
			t.Errorf("%s: its sets: %+v", name, record)
		}

		if group := (plan.Change{Action: plan.ActionDestroy, Type: plan.TypeManifestGroup, ID: "m", Destructive: true}); (record.foreign(group, &plan.Plan{}) == "") != test.counts {
			t.Errorf("%s: its manifests: %+v", name, record)
		}
	}
}

// A set whose OmniWorkers names another cluster has moved until an OmniWorkers of this one asks for it again, whatever becomes of the
// first meanwhile.
func TestSetThatMoved(t *testing.T) {
	live := []plan.SetState{{ID: "w", Size: "pool/2"}}
	destroy := plan.Change{Action: plan.ActionDestroy, Type: setType, ID: "w", Set: "w", OldSize: "pool/2"}
	record := appliedRecord{{ID: "w", Size: "pool/2", OmniWorkers: "workers"}}

	if why := record.foreign(destroy, live); why != "" {
		t.Error(why)
	}

	moved := record.withMoved(map[string]string{"w": "other"})
	if record[0].MovedTo != "" {
		t.Error("the record before has changed")
	}

	next := moved.updated(nil, live, []plan.Change{destroy}, growth{}).withMoved(nil).withWorkers(nil)
	want := appliedRecord{{ID: "w", Size: "pool/2", OmniWorkers: "workers", MovedTo: "other"}}

	if diff := cmp.Diff(want, next); diff != "" {
		t.Error(diff)
	}

	const text = `its OmniWorkers "workers" names OmniCluster "other" instead; apply it with this OmniCluster again to keep the set`
	if why := next.foreign(destroy, live); why != text {
		t.Error(why)
	}

	back := next.updated(live, live, nil, growth{}).withWorkers(map[string]string{"w": "again"})
	if diff := cmp.Diff(appliedRecord{{ID: "w", Size: "pool/2", OmniWorkers: "again"}}, back); diff != "" {
		t.Error(diff)
	}
}

// A set whose OmniWorkers came back asks for its own removals again: none waits for an approval.
func TestSetThatCameBack(t *testing.T) {
	gone := plan.Change{Action: plan.ActionDestroy, Type: plan.TypeMachineSetNode, ID: "m1", Set: "w", Machine: "m1", Destructive: true}

	for _, test := range []struct {
		workers map[string]string
		want    Need
	}{
		{nil, NeedsApproval},
		{map[string]string{"other": "workers"}, NeedsApproval},
		{map[string]string{"w": "workers"}, NeedsSettling},
	} {
		cluster := newCluster()
		cluster.Status.AppliedMachineSets = []v1alpha1.AppliedMachineSet{{ID: "w", Machines: []string{"m1", "m2"}, OmniWorkers: "workers", MovedTo: "other"}}

		d := Decide(Facts{Cluster: cluster, Claim: Claim{Live: omni.Live{Exists: true}}, Plan: planned(gone), Workers: test.workers})
		if len(d.Items) != 1 || d.Items[0].Needs != test.want {
			t.Errorf("%v: %+v", test.workers, d.Items)
		}
	}
}
