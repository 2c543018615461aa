package omnisim_test

import (
	"testing"

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
