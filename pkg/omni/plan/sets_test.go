package plan

import (
	"context"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestPlanTellsTheSets checks that a plan has the wanted and the live machine sets, so that the caller can store them.
func TestPlanTellsTheSets(t *testing.T) {
	st := omnitest.NewFakeOmni()
	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})

	want := []SetState{
		{ID: "demo-control-planes", Machines: []string{omnitest.Machine1}},
		{ID: "demo-workers", Machines: []string{omnitest.Machine2, omnitest.Machine3}},
	}
	if diff := cmp.Diff(want, plan.Wanted); diff != "" || len(plan.Live) != 0 {
		t.Errorf("%s, live %v", diff, plan.Live)
	}

	mustSync(t, st, omnitest.FullTemplate)

	plan = mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+omnitest.ClassDocument("cpu", "2"), Options{})
	if diff := cmp.Diff(want, plan.Live); diff != "" {
		t.Error(diff)
	}

	want[1] = SetState{ID: "demo-workers", Size: "cpu/2"}
	if diff := cmp.Diff(want, plan.Wanted); diff != "" {
		t.Error(diff)
	}

	for _, change := range plan.Changes {
		if change.Type == omnires.MachineSetNodeType && change.Set != "demo-workers" {
			t.Errorf("%s is of set %q", change, change.Set)
		}
	}
}

// TestPlanTellsTheControlPlane checks that a plan says whether it makes a new etcd, and from what.
func TestPlanTellsTheControlPlane(t *testing.T) {
	st, template := omnitest.NewFakeOmni(), omnitest.ClusterDocument+omnitest.ControlPlaneDocument

	says := func(document string, made bool, backup string) {
		t.Helper()

		if plan := mustPlan(t, st, document, Options{}); plan.MakesControlPlane != made || plan.Backup != backup {
			t.Errorf("control plane %v, backup %q", plan.MakesControlPlane, plan.Backup)
		}
	}

	says(template+omnitest.WorkersDocument, true, "")
	says(template+omnitest.BootstrapSpec+omnitest.WorkersDocument, true, omnitest.Backup)
	mustSync(t, st, template)
	says(template+omnitest.WorkersDocument, false, "")

	if err := st.Destroy(t.Context(), omnires.NewMachineSet("demo-control-planes").Metadata()); err != nil {
		t.Fatal(err)
	}

	says(template, true, "")
}

// TestLiveSetsLeaveAllocatedMachinesOut: a machine that Omni took from a class was not requested by its ID.
func TestLiveSetsLeaveAllocatedMachinesOut(t *testing.T) {
	st, template := omnitest.NewFakeOmni(), omnitest.ClusterDocument+omnitest.ControlPlaneDocument+omnitest.ClassDocument("cpu", "1")
	mustSync(t, st, template)

	node := omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("demo", "workers")), "demo")
	node.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")
	omnitest.MustCreate(t, st, node)

	got := mustPlan(t, st, template, Options{}).Live
	want := []SetState{{ID: "demo-control-planes", Machines: []string{omnitest.Machine1}}, {ID: "demo-workers", Size: "cpu/1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestClusterIsTheFirstWriteOfAnAdoption checks that an adopted cluster gets the mark before anything is created in it.
func TestClusterIsTheFirstWriteOfAnAdoption(t *testing.T) {
	st := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))

	plan := mustPlan(t, st, omnitest.FullTemplate, Options{EveryDestroyIsDestructive: true})
	if first := plan.Changes[0]; first.Action != ActionUpdate || first.ID != "demo" || plan.steps[0].change.ID != "demo" {
		t.Errorf("first %s of %v", first, lines(plan))
	}
}

// cancelingOmni cancels the caller's context with its first write.
type cancelingOmni struct {
	state.CoreState

	cancel context.CancelFunc
}

// Create implements state.CoreState.
func (c *cancelingOmni) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	defer c.cancel()

	return c.CoreState.Create(ctx, item, options...)
}

// TestApplyThatIsInterruptedSkipsTheRest checks that changes that were not tried do not count as done.
func TestApplyThatIsInterruptedSkipsTheRest(t *testing.T) {
	st := omnitest.NewFakeOmni()
	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	result, err := Apply(ctx, state.WrapCore(&cancelingOmni{CoreState: st, cancel: cancel}), plan, ApplyOptions{})
	if err == nil || len(result.Applied) != 1 || len(result.Skipped) != len(plan.Changes)-1 {
		t.Errorf("%v: %d applied, %d skipped of %d", err, len(result.Applied), len(result.Skipped), len(plan.Changes))
	}
}

// TestHashCoversTheMachinesOfASet: the consent to destroy a set is for the machines that users put there. Those that
// Omni takes from a class come and go.
func TestHashCoversTheMachinesOfASet(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	put := func(machine string) func(*testing.T, state.State) {
		return func(t *testing.T, st state.State) {
			t.Helper()
			omnitest.MustCreate(t, st, omnitest.Labelled(omnires.NewMachineSetNode(machine, omnitest.SetNamed("demo", "workers")), "demo"))
		}
	}
	allocate := func(t *testing.T, st state.State) {
		t.Helper()

		node := omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("demo", "workers")), "demo")
		node.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")

		if err := st.Create(t.Context(), node, state.WithCreateOwner("MachineSetNodeController")); err != nil {
			t.Fatal(err)
		}
	}
	swap := func(t *testing.T, st state.State) {
		t.Helper()

		if err := st.Destroy(t.Context(), omnires.NewMachineSetNode(omnitest.Machine3, omnitest.SetNamed("demo", "workers")).Metadata()); err != nil {
			t.Fatal(err)
		}

		put(omnitest.Machine4)(t, st)
	}

	for name, test := range map[string]struct {
		workers string
		change  func(*testing.T, state.State)
		same    bool
	}{
		"another machine instead":        {omnitest.WorkersDocument, swap, false},
		"put into a set of a class":      {omnitest.ClassDocument("cpu", "2"), put(omnitest.Machine4), false},
		"taken from the class meanwhile": {omnitest.ClassDocument("cpu", "2"), allocate, true},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, base+test.workers)

			before := mustPlan(t, st, base, Options{})
			test.change(t, st)
			after := mustPlan(t, st, base, Options{})

			if before.Changes[0].String() != after.Changes[0].String() {
				t.Errorf("%s became %s", before.Changes[0], after.Changes[0])
			}

			if same := before.Hash == after.Hash && before.Changes[0].Key() == after.Changes[0].Key(); same != test.same {
				t.Errorf("the same change: %v", same)
			}
		})
	}
}
