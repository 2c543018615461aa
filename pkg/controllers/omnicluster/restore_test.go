package omnicluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const controlPlanes = "demo-control-planes"

// lostWhileSuspended is a cluster that ran, was suspended, and has lost its control plane since, and the UUID in its backup a.snapshot.
func lostWhileSuspended(t *testing.T) (f *fixture, backup string) {
	t.Helper()

	f = running(t)

	backup, err := f.omni.AddEtcdBackup(t.Context(), testCluster, "a.snapshot")
	if err != nil {
		t.Fatal(err)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true })
	f.run()
	f.deleteControlPlanes()

	return f, backup
}

// The order of docs/how-to/replace-machine.md restores etcd: while the cluster is suspended, the control plane's set is deleted in
// Omni, and another OmniControlPlane takes the place of the former. Nothing is written until the cluster is resumed; then the set is
// made with the backup, and its cluster stays the same.
func TestRestoreOfEtcd(t *testing.T) {
	f, backup := lostWhileSuspended(t)
	writes := f.remoteWrites()
	f.until("Synced", metav1.ConditionFalse, "Suspended")
	f.delete(newControlPlane("cp", f.machines[0]))
	f.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")

	restored := newControlPlane("cp", f.machines[1])
	restored.CreationTimestamp = metav1.Now() // as the server does
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

// Somebody deleted the control plane's set in Omni, and the cluster is not suspended: it is not made again, empty, without being asked.
func TestControlPlaneGone(t *testing.T) {
	f := running(t)
	f.deleteControlPlanes()

	cluster := f.until("Stalled", metav1.ConditionTrue, "ControlPlaneGone")
	allow := recreateControlPlane(cluster)
	says(t, message(cluster, "Ready"), `MachineSet "demo-control-planes"`, "spec.bootstrapSpec", "with an empty etcd",
		"kubectl annotate omnicluster demo -n team", v1alpha1.AnnotationRecreate+"="+allow)

	// Neither what the API has nor a new process forgets that there was one; and nothing else is written meanwhile.
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size.IntVal = 3 })
	f.restart()
	f.until("Stalled", metav1.ConditionTrue, "ControlPlaneGone")
	f.quiet()

	if view := f.view(); len(view.Machines) != 1 || view.Machines["demo-w"] != 2 {
		t.Errorf("Omni has %+v", view)
	}

	f.anotherSecond()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Annotations = map[string]string{v1alpha1.AnnotationRecreate: allow} })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	if view := f.view(); view.Machines["demo-control-planes"] != 1 || view.Machines["demo-w"] != 3 {
		t.Errorf("Omni has %+v", view)
	}

	// The permission is used up.
	f.deleteControlPlanes()

	if again := recreateControlPlane(f.until("Stalled", metav1.ConditionTrue, "ControlPlaneGone")); again == allow {
		t.Errorf("%s allows it twice", again)
	}

	f.wantTornDown()
}

// A cluster that is resumed without the backup, and one whose backup was used before.
func TestControlPlaneGoneWhileSuspended(t *testing.T) {
	f, backup := lostWhileSuspended(t)
	f.until("Synced", metav1.ConditionFalse, "Suspended")
	f.quiet()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	f.until("Stalled", metav1.ConditionTrue, "ControlPlaneGone")
	f.quiet()

	f.delete(newControlPlane("cp"))
	f.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")

	restored := newControlPlane("restored", f.machines[1])
	restored.CreationTimestamp = metav1.Now()
	restored.Spec.BootstrapSpec = &v1alpha1.BootstrapSpec{ClusterUUID: backup, Snapshot: "a.snapshot"}
	f.create(restored)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	if got := f.get().Status.ControlPlaneSet; got == nil || got.Backup != backup+"/a.snapshot" {
		t.Errorf("the status has %+v", got)
	}

	// The backup of then is not what is asked for now.
	f.deleteControlPlanes()
	says(t, message(f.until("Stalled", metav1.ConditionTrue, "ControlPlaneGone"), "Ready"), "a.snapshot", "without anything that is newer", "names another one")
	f.quiet()
	f.wantTornDown()
}

func TestControlPlaneGoneLetsGo(t *testing.T) {
	f := running(t)
	f.deleteControlPlanes()
	f.until("Stalled", metav1.ConditionTrue, "ControlPlaneGone")
	f.delete(newCluster())
	f.untilGone()

	if f.view().Exists {
		t.Errorf("Omni has %+v", f.view())
	}
}

// A worker set has no data of its own that a new one would lack: it follows its document.
func TestWorkersDeletedByHand(t *testing.T) {
	f := running(t)

	if err := f.omni.State().TeardownAndDestroy(t.Context(), omnires.NewMachineSet("demo-w").Metadata()); err != nil && !state.IsNotFoundError(err) {
		t.Fatal(err)
	}

	f.eventually("the set", func() string {
		if f.run(); f.view().Machines["demo-w"] != 2 {
			return fmt.Sprint(f.view().Machines)
		}

		return ""
	})
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// recreateControlPlane returns the annotation's value that allows the control plane of a status to be made again.
func recreateControlPlane(cluster *v1alpha1.OmniCluster) string {
	return v1alpha1.RecreateControlPlanePrefix + words.Time(cluster.Status.ControlPlaneSet.Created.Time)
}

// anotherSecond waits until what is made has another time than the control plane that the status has.
func (f *fixture) anotherSecond() {
	f.t.Helper()

	time.Sleep(time.Until(f.get().Status.ControlPlaneSet.Created.Add(time.Second)))
}

// deleteControlPlanes deletes the control plane's set past the controller, as omnictl does.
func (f *fixture) deleteControlPlanes() {
	f.t.Helper()

	err := f.omni.State().TeardownAndDestroy(f.t.Context(), omnires.NewMachineSet(controlPlanes).Metadata())
	if err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err)
	}
}
