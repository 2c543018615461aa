package omnicluster

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestDeleted(t *testing.T) {
	b := running(t)
	b.delete(newCluster())
	b.untilGone()

	if b.view().Exists {
		t.Errorf("Omni has %+v", b.view())
	}

	if !b.hasEvent("Destroyed", "destruction requested") || !b.hasEvent("Released", "was destroyed in Omni") && !b.hasEvent("Released", "no cluster") {
		t.Errorf("events %q", b.seen)
	}
}

// What was true before does not stay true while the machines go.
func TestDeletionForgetsWhatThePhasesFound(t *testing.T) {
	b := running(t)
	b.omni.Pause()
	b.delete(newCluster())
	b.until("Ready", metav1.ConditionFalse, "Deleting")

	for _, condition := range []string{"ConnectionReady", "Assembled", "Validated", "Planned", "Synced", "Available"} {
		found := apimeta.FindStatusCondition(b.get().Status.Conditions, condition)
		if found == nil || found.Status != metav1.ConditionUnknown || found.Reason != "Deleting" {
			t.Errorf("%s: %+v", condition, found)
		}
	}

	b.omni.Resume()
	b.untilGone()
}

func TestDeletedByAControllerThatRemembersNothing(t *testing.T) {
	b := running(t)
	b.delete(newCluster())
	b.run()
	b.restart()
	b.untilGone()

	if b.view().Exists {
		t.Errorf("Omni has %+v", b.view())
	}
}

func TestDeletedWhileSuspendedOrUnapproved(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Suspend, o.Spec.ChangePolicy = true, v1alpha1.ChangePolicyConfirmDestructive
	})
	b.run()
	b.delete(newCluster())
	b.untilGone()

	if b.view().Exists {
		t.Errorf("Omni has %+v", b.view())
	}
}

func TestOrphaned(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	b.run()
	// The children go first, as in the deletion of a namespace.
	b.delete(newCluster())
	b.delete(newWorkers("w", machineClass, 2))
	b.delete(newControlPlane("cp"))
	b.advance(time.Second)
	b.untilGone()

	view := b.view()
	if !view.Exists || view.Machines["demo-w"] != 2 || view.Machines["demo-control-planes"] != 1 {
		t.Errorf("Omni has %+v", view)
	}

	for key := range view.Annotations {
		if key == v1alpha1.MarkOwnerUID || key == v1alpha1.MarkOwnerName || key == v1alpha1.MarkManagementCluster {
			t.Errorf("the mark stayed: %s", key)
		}
	}

	if !b.hasEvent("Released", "stays in Omni") {
		t.Errorf("events %q", b.seen)
	}
}

// Nothing ever reached Omni, as far as the status knows: the deletion does not
// wait for long.
func TestDeletedBeforeAnythingWasMade(t *testing.T) {
	b := newBench(t, newCluster())
	b.run()
	b.pool.Forget("uid-connection")
	b.advance(time.Hour)
	b.delete(newCluster())
	b.until("Ready", metav1.ConditionFalse, "ConnectionNotReady")
	b.advance(consent.OutageTimeout)
	b.untilGone()
}

// The first write to Omni comes after the status says where.
func TestEndpointIsKnownBeforeTheFirstWrite(t *testing.T) {
	b := newBench(t, newCluster())
	b.create(newControlPlane("cp", b.machines[0]))
	b.run()

	if got := b.get().Status.Endpoint; got != b.omni.Endpoint() || b.remoteWrites() != 0 {
		t.Errorf("endpoint %q, %d writes", got, b.remoteWrites())
	}
}

func TestDeletionWithoutAConnection(t *testing.T) {
	b := running(t)
	b.pool.Forget("uid-connection")
	b.advance(time.Hour) // no grace after a start
	b.delete(newCluster())
	b.run()
	b.advance(2 * time.Hour) // and it does not come back

	cluster := b.until("DeletionBlocked", metav1.ConditionTrue, "ConnectionNotReady")
	says(t, message(cluster, "DeletionBlocked"), "orphan", `OmniConnection "omni"`)
	b.quiet()

	if !b.view().Exists {
		t.Fatal("destroyed")
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	b.untilGone()

	if !b.view().Exists {
		t.Error("destroyed, although it is orphaned")
	}
}

// The connection leads to an Omni that does not know the cluster.
func TestDeletionAtAnotherEndpoint(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true })

	cluster := b.get()
	cluster.Status.Endpoint = "https://elsewhere.example.com"

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	if err := omnisim.AnnotateCluster(t.Context(), b.omni.State(), "demo", v1alpha1.MarkOwnerUID, "uid-demo"); err != nil {
		t.Fatal(err)
	}

	// The cluster is there after all: the mark decides, not the address.
	b.delete(newCluster())
	b.untilGone()

	if b.view().Exists {
		t.Error("the marked cluster was left behind")
	}
}

func TestDeletionOfAClusterThatIsUnknownElsewhere(t *testing.T) {
	gone := newCluster()
	gone.Finalizers = []string{v1alpha1.Finalizer}
	gone.Status.Endpoint = "https://elsewhere.example.com"
	gone.Status.OmniClusterID = "an-id"
	b := newBench(t, gone)
	b.delete(newCluster())

	cluster := b.until("DeletionBlocked", metav1.ConditionTrue, "EndpointChanged")
	says(t, message(cluster, "DeletionBlocked"), "https://elsewhere.example.com", b.omni.Endpoint())
	b.quiet()
}

// A machine that died cannot be reset: the deletion says which, and goes on
// when destroyMachines is set.
func TestDeletionWithADeadMachine(t *testing.T) {
	b := running(t)
	b.omni.KillMachine(b.machines[0])
	b.delete(newCluster())

	cluster := b.until("DeletionBlocked", metav1.ConditionTrue, "WaitingForMachines")
	says(t, message(cluster, "DeletionBlocked"), b.machines[0], "not connected", "since", "destroyMachines")

	if !b.view().Exists {
		t.Fatal("gone already")
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.DestroyMachines = true })
	b.untilGone()

	if b.view().Exists {
		t.Errorf("Omni has %+v", b.view())
	}
}

// Somebody deleted the cluster in Omni: it is not made again without being asked.
func TestRemoteClusterGone(t *testing.T) {
	b := running(t)
	old := b.get().Status.OmniClusterID

	destroyRemotely(b)

	cluster := b.until("Stalled", metav1.ConditionTrue, "RemoteClusterGone")
	says(t, message(cluster, "Stalled"), old, v1alpha1.AnnotationRecreate)
	b.quiet()

	b.edit(func(o *v1alpha1.OmniCluster) { o.Annotations = map[string]string{v1alpha1.AnnotationRecreate: old} })
	b.until("Ready", metav1.ConditionTrue, "Running")

	if got := b.get().Status.OmniClusterID; got == old || got == "" {
		t.Errorf("omniClusterID %q, before %q", got, old)
	}

	// The permission is used up.
	destroyRemotely(b)
	b.until("Stalled", metav1.ConditionTrue, "RemoteClusterGone")
}

func TestRemoteClusterGoneLetsGo(t *testing.T) {
	b := running(t)
	destroyRemotely(b)
	b.until("Stalled", metav1.ConditionTrue, "RemoteClusterGone")
	b.delete(newCluster())
	b.untilGone()
}

// destroyRemotely deletes the cluster past the controller, as omnictl does.
func destroyRemotely(b *bench) {
	b.t.Helper()

	lease, open := b.pool.Get("uid-connection")
	if !open {
		b.t.Fatal("no session")
	}
	defer lease.Release()

	b.eventually("the end of the cluster in Omni", func() string {
		if err := lease.Ready("demo"); err != nil {
			return err.Error()
		}

		plan, err := lease.PlanDelete(b.t.Context(), "demo", deleteEverything())
		if err != nil {
			return err.Error()
		}

		if _, err = lease.Apply(b.t.Context(), plan, everythingAllowed()); err != nil {
			return err.Error()
		}

		if b.view().Exists {
			return "still there"
		}

		return ""
	})
}

// A cluster that is torn down in Omni is not planned against.
func TestRemoteDeleting(t *testing.T) {
	b := running(t)
	b.omni.Pause()

	if _, err := b.omni.State().Teardown(t.Context(), clusterPointer()); err != nil {
		t.Fatal(err)
	}

	cluster := b.until("Planned", metav1.ConditionFalse, "RemoteDeleting")
	if apimeta.IsStatusConditionTrue(cluster.Status.Conditions, "Stalled") {
		t.Error("nobody has to act")
	}

	b.quiet()
	b.omni.Resume()
}
