package omnicluster

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const controlPlanes = "demo-control-planes"

// The order of docs/how-to/replace-machine.md restores etcd: while the cluster is suspended, the control plane's set is deleted in
// Omni, and another OmniControlPlane takes the place of the former. Nothing is written until the cluster is resumed; then the set is
// made with the backup, and its cluster stays the same.
func TestRestoreOfEtcd(t *testing.T) {
	f := running(t)

	backup, err := f.omni.AddEtcdBackup(t.Context(), testCluster, "a.snapshot")
	if err != nil {
		t.Fatal(err)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true })
	f.run()
	f.deleteControlPlanes()

	writes := f.remoteWrites()
	f.until("Synced", metav1.ConditionFalse, "Suspended")
	f.delete(newControlPlane("cp", f.machines[0]))
	f.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")

	restored := newControlPlane("cp", f.machines[1])
	restored.UID, restored.Spec.BootstrapSpec = "uid-restored", &v1alpha1.BootstrapSpec{ClusterUUID: backup, Snapshot: "a.snapshot"}
	f.create(restored)
	f.until("Synced", metav1.ConditionFalse, "Suspended")
	f.quiet()

	if made := f.omni.Writes()[writes:]; len(made) != 0 {
		t.Errorf("suspended, and wrote %v", made)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	set, err := safe.StateGetByID[*omnires.MachineSet](t.Context(), f.omni.State(), controlPlanes)
	if err != nil {
		t.Fatal(err)
	}

	if got := set.TypedSpec().Value.GetBootstrapSpec(); got.GetClusterUuid() != backup || got.GetSnapshot() != "a.snapshot" {
		t.Errorf("the set is bootstrapped from %v", got)
	}

	if id := f.get().Status.OmniClusterID; id != backup {
		t.Errorf("cluster %q, before %q", id, backup)
	}

	f.wantTornDown()
}

// deleteControlPlanes deletes the control plane's set past the controller, as omnictl does.
func (f *fixture) deleteControlPlanes() {
	f.t.Helper()

	err := f.omni.State().TeardownAndDestroy(f.t.Context(), omnires.NewMachineSet(controlPlanes).Metadata())
	if err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err)
	}
}
