package omnitest

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// ClusterDocument is the Cluster document of a template, with an owner's mark.
const ClusterDocument = `kind: Cluster
name: demo
annotations:
  omni.texashpc.com/owner-uid: uid-1
kubernetes:
  version: v1.35.0
talos:
  version: v1.13.2
`

// ControlPlaneDocument is a control plane of one machine.
const ControlPlaneDocument = `---
kind: ControlPlane
machines:
- ` + Machine1 + `
`

// BootstrapSpec is a part of a ControlPlaneDocument that has etcd made from Backup.
const BootstrapSpec = "bootstrapSpec:\n  clusterUUID: 5f0c6f2a-1d0e-4f6e-9a53-0c6a1f3b7d11\n  snapshot: a.snapshot\n"

// Backup is the backup of BootstrapSpec.
const Backup = "5f0c6f2a-1d0e-4f6e-9a53-0c6a1f3b7d11/a.snapshot"

// WorkersDocument is a set of two machines.
const WorkersDocument = `---
kind: Workers
name: workers
machines:
- ` + Machine2 + `
- ` + Machine3 + `
`

// FullTemplate is the three documents together.
const FullTemplate = ClusterDocument + ControlPlaneDocument + WorkersDocument

// ClassDocument returns a worker set that takes its machines from a class.
func ClassDocument(class, size string) string {
	return "---\nkind: Workers\nname: workers\nmachineClass:\n  name: " + class + "\n  size: " + size + "\n"
}

// Marked returns a Cluster with a mark of that UID, and a foreign annotation.
func Marked(name, uid string) *omnires.Cluster {
	cluster := ClusterNamed(name)
	annotations := cluster.Metadata().Annotations()
	annotations.Set(v1alpha1.MarkOwnerUID, uid)
	annotations.Set(v1alpha1.MarkHub, "hub-1")
	annotations.Set(v1alpha1.MarkOwnerNamespace, "prod")
	annotations.Set(v1alpha1.MarkOwnerName, "demo")
	annotations.Set(v1alpha1.MarkManagementCluster, "hub")
	annotations.Set("kept", "yes")

	return cluster
}

// OfUID1 reports whether a mark has the UID uid-1.
func OfUID1(marks omni.Marks) bool { return marks.UID == "uid-1" }

// MustCreate creates resources, each with its owner.
func MustCreate(t *testing.T, st state.State, items ...resource.Resource) {
	t.Helper()

	for _, item := range items {
		if err := st.Create(t.Context(), item, state.WithCreateOwner(item.Metadata().Owner())); err != nil {
			t.Fatal(err)
		}
	}
}

// MustChange changes a resource in place, whatever its owner.
func MustChange[R resource.Resource](t *testing.T, st state.State, item R, change func(R)) {
	t.Helper()

	_, err := st.UpdateWithConflicts(t.Context(), item.Metadata(), func(found resource.Resource) error {
		change(found.(R)) // a test

		return nil
	}, state.WithExpectedPhaseAny(), state.WithUpdateOwner(item.Metadata().Owner()))
	if err != nil {
		t.Fatal(err)
	}
}

// MustDestroy destroys a resource.
func MustDestroy(t *testing.T, st state.State, item resource.Resource) {
	t.Helper()

	if err := st.Destroy(t.Context(), item.Metadata()); err != nil {
		t.Fatal(err)
	}
}

// Labelled sets the cluster label and returns the resource.
func Labelled[R resource.Resource](item R, cluster string) R {
	item.Metadata().Labels().Set(omnires.LabelCluster, cluster)

	return item
}

// ClusterNamed returns a Cluster with versions.
func ClusterNamed(name string) *omnires.Cluster {
	cluster := omnires.NewCluster(name)
	cluster.TypedSpec().Value.KubernetesVersion = "1.35.0"
	cluster.TypedSpec().Value.TalosVersion = "1.13.2"

	return cluster
}

// SetNamed returns a machine set of a cluster, with listed machines.
func SetNamed(cluster, name string) *omnires.MachineSet {
	return Labelled(omnires.NewMachineSet(cluster+"-"+name), cluster)
}

// ClassSet returns a machine set that takes count machines of a class.
func ClassSet(cluster, name, class string, count uint32) *omnires.MachineSet {
	set := SetNamed(cluster, name)
	set.TypedSpec().Value.MachineAllocation = &specs.MachineSetSpec_MachineAllocation{Name: class, MachineCount: count}

	return set
}

// UnlimitedSet returns a machine set that takes all machines of a class.
func UnlimitedSet(cluster, name, class string) *omnires.MachineSet {
	set := ClassSet(cluster, name, class, 0)
	set.TypedSpec().Value.MachineAllocation.AllocationType = specs.MachineSetSpec_MachineAllocation_Unlimited

	return set
}

// LockMachine locks a machine of cluster demo.
func LockMachine(t *testing.T, st state.State, machine string) {
	t.Helper()

	MustChange(t, st, omnires.NewMachineSetNode(machine, SetNamed("demo", "workers")), func(n *omnires.MachineSetNode) {
		n.Metadata().Annotations().Set(omnires.MachineLocked, "")
	})
}

// LockCluster locks cluster demo.
func LockCluster(t *testing.T, st state.State) {
	t.Helper()

	MustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set(omnires.ClusterLocked, "") })
}

// TearDown requests a teardown, which a finalizer blocks.
func TearDown(t *testing.T, st state.State, item resource.Resource) {
	t.Helper()

	if err := st.AddFinalizer(t.Context(), item.Metadata(), "test"); err != nil {
		t.Fatal(err)
	}

	if _, err := st.Teardown(t.Context(), item.Metadata()); err != nil {
		t.Fatal(err)
	}
}

// MachineIn creates a machine's status, as a member of cluster demo.
func MachineIn(t *testing.T, st state.State, id string, connected bool) {
	t.Helper()

	machine := Labelled(omnires.NewMachineStatus(id), "demo")
	machine.TypedSpec().Value.Connected = connected

	if !connected {
		machine.Metadata().Labels().Set(omnires.MachineStatusLabelDisconnected, "")
	}

	MustCreate(t, st, machine)
}

// Machine IDs for tests.
const (
	Machine1 = "11111111-1111-4111-8111-111111111111"
	Machine2 = "22222222-2222-4222-8222-222222222222"
	Machine3 = "33333333-3333-4333-8333-333333333333"
	Machine4 = "44444444-4444-4444-8444-444444444444"
)
