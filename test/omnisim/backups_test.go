package omnisim_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// A control plane that is gone can be made again, from a backup that exists.
func TestBootstrapFromBackup(t *testing.T) {
	sim := startIota(t)
	ctx, st := deadline(t), sim.State()

	uuid, err := sim.AddEtcdBackup(ctx, "iota", "a.snapshot")
	if err != nil {
		t.Fatal(err)
	}

	before, err := safe.StateGetByID[*omni.MachineSet](ctx, st, omni.ControlPlanesResourceID("iota"))
	if err != nil {
		t.Fatal(err)
	}

	again := func(bootstrap *specs.MachineSetSpec_BootstrapSpec) *omni.MachineSet {
		set := omni.NewMachineSet(before.Metadata().ID())
		set.Metadata().Labels().Set(omni.LabelCluster, "iota")
		set.Metadata().Labels().Set(omni.LabelControlPlaneRole, "")
		set.TypedSpec().Value.MachineAllocation = before.TypedSpec().Value.MachineAllocation
		set.TypedSpec().Value.BootstrapSpec = bootstrap

		return set
	}

	if err := st.TeardownAndDestroy(ctx, before.Metadata()); err != nil && !state.IsNotFoundError(err) {
		t.Fatal(err)
	}

	wantRefused(t, st.Create(ctx, again(&specs.MachineSetSpec_BootstrapSpec{ClusterUuid: "b", Snapshot: "a.snapshot"})), "invalid cluster UUID")
	wantRefused(t, st.Create(ctx, again(&specs.MachineSetSpec_BootstrapSpec{ClusterUuid: uuid, Snapshot: "b.snapshot"})), "failed to get backup")

	if err := st.Create(ctx, again(&specs.MachineSetSpec_BootstrapSpec{ClusterUuid: uuid, Snapshot: "a.snapshot"})); err != nil {
		t.Error(err)
	}
}

// A control plane that somebody deletes takes its machines along, and leaves a cluster that the next one bootstraps anew: Omni does not
// ask whether that may be empty.
func TestControlPlaneDeleted(t *testing.T) {
	sim := startIota(t)
	ctx, st := deadline(t), sim.State()

	id := omni.ControlPlanesResourceID("iota")
	if err := st.TeardownAndDestroy(ctx, omni.NewMachineSet(id).Metadata()); err != nil && !state.IsNotFoundError(err) {
		t.Fatal(err)
	}

	nodes, err := safe.StateListAll[*omni.MachineSetNode](ctx, st, state.WithLabelQuery(resource.LabelEqual(omni.LabelMachineSet, id)))
	if err != nil || nodes.Len() != 0 {
		t.Errorf("%d machines are left in the set: %v", nodes.Len(), err)
	}

	cluster, err := safe.StateGetByID[*omni.Cluster](ctx, st, "iota")
	if err != nil || cluster.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the cluster: %v, %v", cluster, err)
	}

	set := omni.NewMachineSet(id)
	set.Metadata().Labels().Set(omni.LabelCluster, "iota")
	set.Metadata().Labels().Set(omni.LabelControlPlaneRole, "")

	if err := st.Create(ctx, set); err != nil {
		t.Error(err)
	}
}
