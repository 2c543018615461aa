package plan

import (
	"errors"
	"slices"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// deleteStep plans and applies one step of a deletion.
func deleteStep(t *testing.T, st state.State, options DeleteOptions) (*Plan, Result) {
	t.Helper()

	plan, err := Delete(t.Context(), st, "demo", options)
	if err != nil {
		t.Fatal(err)
	}

	result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
	if err != nil {
		t.Fatal(err)
	}

	return plan, result
}

func TestDeleteStepByStep(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.MachineIn(t, st, omnitest.Machine1, true)

	cluster := omnires.NewCluster("demo").Metadata()
	if err := st.AddFinalizer(t.Context(), cluster, "ClusterController"); err != nil {
		t.Fatal(err)
	}

	progress, err := observe.Progress(t.Context(), st, "demo")
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

	// Further steps request nothing again.
	for range 2 {
		plan, result = deleteStep(t, st, DeleteOptions{})
		if diff := cmp.Diff([]string{`! destroy Cluster "demo" ...`}, lines(plan)); diff != "" || len(result.Requested) != 0 {
			t.Errorf("%s %v", diff, result.Requested)
		}
	}

	progress, err = observe.Progress(t.Context(), st, "demo")
	if err != nil || !progress.TearingDown || progress.Gone || progress.Since.IsZero() {
		t.Errorf("meanwhile: %+v, %v", progress, err)
	}

	if diff := cmp.Diff([]string{"ClusterController"}, progress.Finalizers); diff != "" {
		t.Error(diff)
	}

	want := []observe.Blocker{
		{Machine: omnitest.Machine2, MachineSet: "demo-workers"},
		{Machine: omnitest.Machine3, MachineSet: "demo-workers"},
		{Machine: omnitest.Machine1, MachineSet: "demo-control-planes", Connected: true},
	}
	if diff := cmp.Diff(want, progress.Blockers, cmpopts.IgnoreFields(observe.Blocker{}, "Since")); diff != "" {
		t.Error(diff)
	}

	// Omni finishes.
	if err = st.RemoveFinalizer(t.Context(), cluster, "ClusterController"); err != nil {
		t.Fatal(err)
	}

	if _, result = deleteStep(t, st, DeleteOptions{}); len(result.Applied) != 1 {
		t.Errorf("result %+v", result)
	}

	progress, err = observe.Progress(t.Context(), st, "demo")
	if err != nil || !progress.Gone {
		t.Errorf("after: %+v, %v", progress, err)
	}
}

func TestDeleteRemovesWhatAHalfMadeClusterLeft(t *testing.T) {
	st := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, st, omnitest.SetNamed("demo", "workers"), omnitest.Labelled(omnires.NewConfigPatch("p"), "demo"), omnitest.Labelled(omnires.NewConfigPatch("q"), "other"))

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
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.MachineIn(t, st, omnitest.Machine1, true)
	omnitest.MachineIn(t, st, omnitest.Machine2, false)

	patch := omnires.NewConfigPatch("of-machine")
	patch.Metadata().Labels().Set(omnires.LabelMachine, omnitest.Machine2)

	extensions := omnitest.Labelled(omnires.NewExtensionsConfiguration("schematic-demo"), "demo")
	link := siderolink.NewLink(omnitest.Machine2, nil)

	omnitest.MustCreate(t, st, patch, extensions, link, siderolink.NewLink(omnitest.Machine1, nil))

	plan, err := Delete(t.Context(), st, "demo", DeleteOptions{DestroyMachines: true})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{
		`! destroy Link "` + omnitest.Machine2 + `"`,
		`destroy ConfigPatch "of-machine"`,
		`! destroy Cluster "demo"`,
	}
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Error(diff)
	}

	// The link's teardown is blocked: later phases wait.
	if err = st.AddFinalizer(t.Context(), link.Metadata(), "LinkController"); err != nil {
		t.Fatal(err)
	}

	result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"destroy Link " + omnitest.Machine2}, changes(result.Pending)); diff != "" {
		t.Error(diff)
	}

	// The cluster may still be kept: the machines that live have all that they run with.
	if found, err := st.Get(t.Context(), extensions.Metadata()); err != nil || found.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the extensions of a cluster that is not torn down yet: %v, %v", found, err)
	}

	if len(result.Skipped) != 2 {
		t.Errorf("skipped %v", changes(result.Skipped))
	}

	// Omni releases the machine: link and status vanish, and the rest follows.
	if err = st.RemoveFinalizer(t.Context(), link.Metadata(), "LinkController"); err != nil {
		t.Fatal(err)
	}

	_, result = deleteStep(t, st, DeleteOptions{DestroyMachines: true})
	if diff := cmp.Diff([]string{"destroy Link " + omnitest.Machine2, "destroy ConfigPatch of-machine", "destroy Cluster demo"}, changes(result.Applied)); diff != "" {
		t.Error(diff)
	}

	if _, err = st.Get(t.Context(), siderolink.NewLink(omnitest.Machine1, nil).Metadata()); err != nil {
		t.Errorf("the connected machine's link: %v", err)
	}

	// Omni removes the extensions with the cluster; what it leaves goes then. A link that is already gone is no error.
	_, result = deleteStep(t, st, DeleteOptions{DestroyMachines: true})
	if !slices.Contains(changes(result.Applied), "destroy ExtensionsConfiguration schematic-demo") || len(result.Pending) > 0 {
		t.Errorf("result %+v", result)
	}
}

func TestDeleteKeepsOffALockedCluster(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.LockCluster(t, st)

	plan, err := Delete(t.Context(), st, "demo", DeleteOptions{DestroyMachines: true})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange}); !errors.Is(err, omni.ErrClusterLocked) {
		t.Errorf("error %v", err)
	}
}

func TestDeleteOfNothing(t *testing.T) {
	st := omnitest.NewFakeOmni()

	plan, result := deleteStep(t, st, DeleteOptions{DestroyMachines: true})
	if !plan.Empty() || len(result.Taken()) > 0 {
		t.Errorf("plan %v", lines(plan))
	}
}
