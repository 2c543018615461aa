package omni

import (
	"errors"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
)

// step plans and applies one step of a deletion.
func deleteStep(t *testing.T, st state.State, options DeleteOptions) (*Plan, Result) {
	t.Helper()

	plan, err := PlanDelete(t.Context(), st, "demo", options)
	if err != nil {
		t.Fatal(err)
	}

	result, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{Leave: EveryChange})
	if err != nil {
		t.Fatal(err)
	}

	return plan, result
}

func TestDeleteStepByStep(t *testing.T) {
	st := newFakeOmni()
	mustSync(t, st, fullTemplate)
	machineIn(t, st, machine1, true)

	cluster := omnires.NewCluster("demo").Metadata()
	if err := st.AddFinalizer(t.Context(), cluster, "ClusterController"); err != nil {
		t.Fatal(err)
	}

	progress, err := Progress(t.Context(), st, "demo")
	if err != nil || progress.TearingDown || progress.Gone {
		t.Errorf("before: %+v, %v", progress, err)
	}

	plan, result := deleteStep(t, st, DeleteOptions{})
	if diff := cmp.Diff([]string{`! destroy Cluster "demo"`}, lines(plan)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy Cluster demo"}, changes(result.Pending)); diff != "" {
		t.Error(diff)
	}

	// Again and again, without another request.
	for range 2 {
		plan, result = deleteStep(t, st, DeleteOptions{})
		if diff := cmp.Diff([]string{`! destroy Cluster "demo" ...`}, lines(plan)); diff != "" || len(result.Requested) != 0 {
			t.Errorf("%s %v", diff, result.Requested)
		}
	}

	progress, err = Progress(t.Context(), st, "demo")
	if err != nil || !progress.TearingDown || progress.Gone || progress.Since.IsZero() {
		t.Errorf("meanwhile: %+v, %v", progress, err)
	}

	if diff := cmp.Diff([]string{"ClusterController"}, progress.Finalizers); diff != "" {
		t.Error(diff)
	}

	want := []Blocker{
		{Machine: machine2, MachineSet: "demo-workers"},
		{Machine: machine3, MachineSet: "demo-workers"},
		{Machine: machine1, MachineSet: "demo-control-planes", Connected: true},
	}
	if diff := cmp.Diff(want, progress.Blockers, cmpopts.IgnoreFields(Blocker{}, "Since")); diff != "" {
		t.Error(diff)
	}

	// Omni has done its part.
	if err = st.RemoveFinalizer(t.Context(), cluster, "ClusterController"); err != nil {
		t.Fatal(err)
	}

	if _, result = deleteStep(t, st, DeleteOptions{}); len(result.Applied) != 1 {
		t.Errorf("result %+v", result)
	}

	progress, err = Progress(t.Context(), st, "demo")
	if err != nil || !progress.Gone {
		t.Errorf("after: %+v, %v", progress, err)
	}
}

func TestDeleteRemovesWhatAHalfMadeClusterLeft(t *testing.T) {
	st := newFakeOmni()
	mustCreate(t, st, setNamed("demo", "workers"), labelled(omnires.NewConfigPatch("p"), "demo"), labelled(omnires.NewConfigPatch("q"), "other"))

	plan, _ := deleteStep(t, st, DeleteOptions{})
	if diff := cmp.Diff([]string{`! destroy MachineSet "demo-workers" (0 -> none)`, `destroy ConfigPatch "p"`}, lines(plan)); diff != "" {
		t.Error(diff)
	}

	if plan, _ = deleteStep(t, st, DeleteOptions{}); !plan.Empty() {
		t.Errorf("left: %v", lines(plan))
	}

	if _, err := st.Get(t.Context(), omnires.NewConfigPatch("q").Metadata()); err != nil {
		t.Errorf("another cluster's patch: %v", err)
	}
}

func TestDeleteDisconnectedMachines(t *testing.T) {
	st := newFakeOmni()
	mustSync(t, st, fullTemplate)
	machineIn(t, st, machine1, true)
	machineIn(t, st, machine2, false)

	patch := omnires.NewConfigPatch("of-machine")
	patch.Metadata().Labels().Set(omnires.LabelMachine, machine2)

	extensions := labelled(omnires.NewExtensionsConfiguration("schematic-demo"), "demo")
	link := siderolink.NewLink(machine2, nil)

	mustCreate(t, st, patch, extensions, link, siderolink.NewLink(machine1, nil))

	plan, err := PlanDelete(t.Context(), st, "demo", DeleteOptions{DestroyMachines: true})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{
		`destroy ExtensionsConfiguration "schematic-demo"`,
		`! destroy Link "` + machine2 + `"`,
		`destroy ConfigPatch "of-machine"`,
		`! destroy Cluster "demo"`,
	}
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Error(diff)
	}

	// The link is held up: what comes after it waits, what comes before is done.
	if err = st.AddFinalizer(t.Context(), link.Metadata(), "LinkController"); err != nil {
		t.Fatal(err)
	}

	result, err := ApplyPlan(t.Context(), st, plan, ApplyOptions{Leave: EveryChange})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"destroy ExtensionsConfiguration schematic-demo"}, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"destroy Link " + machine2}, changes(result.Pending)); diff != "" {
		t.Error(diff)
	}

	if len(result.Skipped) != 2 {
		t.Errorf("skipped %v", changes(result.Skipped))
	}

	// Omni lets go of the machine: link and status vanish, and the rest follows.
	if err = st.RemoveFinalizer(t.Context(), link.Metadata(), "LinkController"); err != nil {
		t.Fatal(err)
	}

	_, result = deleteStep(t, st, DeleteOptions{DestroyMachines: true})
	if diff := cmp.Diff([]string{"destroy Link " + machine2, "destroy ConfigPatch of-machine", "destroy Cluster demo"}, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}

	if _, err = st.Get(t.Context(), siderolink.NewLink(machine1, nil).Metadata()); err != nil {
		t.Errorf("the connected machine's link: %v", err)
	}

	// A link that is gone already is no error.
	if _, result = deleteStep(t, st, DeleteOptions{DestroyMachines: true}); len(result.Pending) > 0 {
		t.Errorf("result %+v", result)
	}
}

func TestDeleteKeepsOffALockedCluster(t *testing.T) {
	st := newFakeOmni()
	mustSync(t, st, fullTemplate)
	lockCluster(t, st)

	plan, err := PlanDelete(t.Context(), st, "demo", DeleteOptions{DestroyMachines: true})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = ApplyPlan(t.Context(), st, plan, ApplyOptions{Leave: EveryChange}); !errors.Is(err, ErrClusterLocked) {
		t.Errorf("error %v", err)
	}
}

func TestDeleteOfNothing(t *testing.T) {
	st := newFakeOmni()

	plan, result := deleteStep(t, st, DeleteOptions{DestroyMachines: true})
	if !plan.Empty() || result.Wrote() {
		t.Errorf("plan %v", lines(plan))
	}
}
