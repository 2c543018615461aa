package omni

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func mustCreate(t *testing.T, st state.State, items ...resource.Resource) {
	t.Helper()

	for _, item := range items {
		if err := st.Create(t.Context(), item, state.WithCreateOwner(item.Metadata().Owner())); err != nil {
			t.Fatal(err)
		}
	}
}

// mustChange changes a resource in place, whoever owns it.
func mustChange[R resource.Resource](t *testing.T, st state.State, item R, change func(R)) {
	t.Helper()

	_, err := st.UpdateWithConflicts(t.Context(), item.Metadata(), func(found resource.Resource) error {
		change(found.(R)) //nolint:forcetypeassert // a test

		return nil
	}, state.WithExpectedPhaseAny(), state.WithUpdateOwner(item.Metadata().Owner()))
	if err != nil {
		t.Fatal(err)
	}
}

func mustDestroy(t *testing.T, st state.State, item resource.Resource) {
	t.Helper()

	if err := st.Destroy(t.Context(), item.Metadata()); err != nil {
		t.Fatal(err)
	}
}

// labelled sets the cluster label and returns the resource.
func labelled[R resource.Resource](item R, cluster string) R {
	item.Metadata().Labels().Set(omnires.LabelCluster, cluster)

	return item
}

func clusterNamed(name string) *omnires.Cluster {
	cluster := omnires.NewCluster(name)
	cluster.TypedSpec().Value.KubernetesVersion = "1.35.0"
	cluster.TypedSpec().Value.TalosVersion = "1.13.2"

	return cluster
}

func setNamed(cluster, name string) *omnires.MachineSet {
	return labelled(omnires.NewMachineSet(cluster+"-"+name), cluster)
}

func classSet(cluster, name, class string, count uint32) *omnires.MachineSet {
	set := setNamed(cluster, name)
	set.TypedSpec().Value.MachineAllocation = &specs.MachineSetSpec_MachineAllocation{Name: class, MachineCount: count}

	return set
}

func unlimitedSet(cluster, name, class string) *omnires.MachineSet {
	set := classSet(cluster, name, class, 0)
	set.TypedSpec().Value.MachineAllocation.AllocationType = specs.MachineSetSpec_MachineAllocation_Unlimited

	return set
}

func lockMachine(t *testing.T, st state.State, machine string) {
	t.Helper()

	mustChange(t, st, omnires.NewMachineSetNode(machine, setNamed("demo", "workers")), func(n *omnires.MachineSetNode) {
		n.Metadata().Annotations().Set(omnires.MachineLocked, "")
	})
}

func lockCluster(t *testing.T, st state.State) {
	t.Helper()

	mustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set(omnires.ClusterLocked, "") })
}

// tearDown requests a teardown that a finalizer holds up.
func tearDown(t *testing.T, st state.State, item resource.Resource) {
	t.Helper()

	if err := st.AddFinalizer(t.Context(), item.Metadata(), "test"); err != nil {
		t.Fatal(err)
	}

	if _, err := st.Teardown(t.Context(), item.Metadata()); err != nil {
		t.Fatal(err)
	}
}

// machineIn puts a machine's status into Omni, as a member of cluster demo.
func machineIn(t *testing.T, st state.State, id string, connected bool) {
	t.Helper()

	machine := labelled(omnires.NewMachineStatus(id), "demo")
	machine.TypedSpec().Value.Connected = connected

	if !connected {
		machine.Metadata().Labels().Set(omnires.MachineStatusLabelDisconnected, "")
	}

	mustCreate(t, st, machine)
}

// Machine IDs for tests.
const (
	machine1 = "11111111-1111-4111-8111-111111111111"
	machine2 = "22222222-2222-4222-8222-222222222222"
	machine3 = "33333333-3333-4333-8333-333333333333"
	machine4 = "44444444-4444-4444-8444-444444444444"
)
