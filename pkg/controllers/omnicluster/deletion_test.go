package omnicluster

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestDeleted(t *testing.T) {
	f := running(t)
	f.delete(newCluster())
	f.untilGone()

	if f.view().Exists {
		t.Errorf("Omni has %+v", f.view())
	}

	if !f.hasEvent("Destroyed", "destruction requested") || !f.hasEvent("Released", "was destroyed in Omni") && !f.hasEvent("Released", "no cluster") {
		t.Errorf("events %q", f.events.All())
	}
}

// What was true before does not stay true while the machines go.
func TestDeletionForgetsWhatThePhasesFound(t *testing.T) {
	f := running(t)
	f.omni.Pause()
	f.delete(newCluster())
	f.until("Ready", metav1.ConditionFalse, "Deleting")

	for _, condition := range []string{"ConnectionReady", "Assembled", "Validated", "Planned", "Synced", "Available"} {
		found := apimeta.FindStatusCondition(f.get().Status.Conditions, condition)
		if found == nil || found.Status != metav1.ConditionUnknown || found.Reason != "Deleting" {
			t.Errorf("%s: %+v", condition, found)
		}
	}

	f.omni.Resume()
	f.untilGone()
}

func TestDeletedByAControllerThatRemembersNothing(t *testing.T) {
	f := running(t)
	f.delete(newCluster())
	f.run()
	f.restart()
	f.untilGone()

	if f.view().Exists {
		t.Errorf("Omni has %+v", f.view())
	}
}

func TestDeletedWhileSuspendedOrUnapproved(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Suspend, o.Spec.ChangePolicy = true, v1alpha1.ChangePolicyConfirmDestructive
	})
	f.run()
	f.delete(newCluster())
	f.untilGone()

	if f.view().Exists {
		t.Errorf("Omni has %+v", f.view())
	}
}

func TestOrphaned(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	f.run()
	// The children go first, as in the deletion of a namespace.
	f.delete(newCluster())
	f.delete(newWorkers("w", machineClass, 2))
	f.delete(newControlPlane("cp"))
	f.advance(time.Second)
	f.untilGone()

	view := f.view()
	if !view.Exists || view.Machines["demo-w"] != 2 || view.Machines["demo-control-planes"] != 1 {
		t.Errorf("Omni has %+v", view)
	}

	for key := range view.Annotations {
		if key == v1alpha1.MarkOwnerUID || key == v1alpha1.MarkOwnerName || key == v1alpha1.MarkManagementCluster {
			t.Errorf("the mark stayed: %s", key)
		}
	}

	if !f.hasEvent("Released", "stays in Omni") {
		t.Errorf("events %q", f.events.All())
	}
}

// Nothing ever reached Omni, as far as the status knows: the deletion does not
// wait for long.
func TestDeletedBeforeAnythingWasMade(t *testing.T) {
	f := newFixture(t, newCluster())
	f.run()
	f.pool.Forget("uid-connection")
	f.advance(time.Hour)
	f.delete(newCluster())
	f.until("Ready", metav1.ConditionFalse, "ConnectionNotReady")
	f.advance(consent.OutageTimeout)
	f.untilGone()
}

// The first write to Omni comes after the status says where.
func TestEndpointIsKnownBeforeTheFirstWrite(t *testing.T) {
	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]))
	f.run()

	if got := f.get().Status.Endpoint; got != f.omni.Endpoint() || f.remoteWrites() != 0 {
		t.Errorf("endpoint %q, %d writes", got, f.remoteWrites())
	}
}

func TestDeletionWithoutAConnection(t *testing.T) {
	f := running(t)
	f.pool.Forget("uid-connection")
	f.advance(time.Hour) // no grace after a start
	f.delete(newCluster())
	f.run()
	f.advance(2 * time.Hour) // and it does not come back

	cluster := f.until("DeletionBlocked", metav1.ConditionTrue, "ConnectionNotReady")
	says(t, message(cluster, "DeletionBlocked"), "orphan", `OmniConnection "omni"`)
	f.quiet()

	if !f.view().Exists {
		t.Fatal("destroyed")
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	f.untilGone()

	if !f.view().Exists {
		t.Error("destroyed, although it is orphaned")
	}
}

// The connection leads to an Omni that does not know the cluster.
func TestDeletionAtAnotherEndpoint(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true })

	cluster := f.get()
	cluster.Status.Endpoint = "https://elsewhere.example.com"

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	if err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), "demo", v1alpha1.MarkOwnerUID, "uid-demo"); err != nil {
		t.Fatal(err)
	}

	// The cluster is there after all: the mark decides, not the address.
	f.delete(newCluster())
	f.untilGone()

	if f.view().Exists {
		t.Error("the marked cluster was left behind")
	}
}

func TestDeletionOfAClusterThatIsUnknownElsewhere(t *testing.T) {
	gone := newCluster()
	gone.Finalizers = []string{v1alpha1.Finalizer}
	gone.Status.Endpoint = "https://elsewhere.example.com"
	gone.Status.OmniClusterID = "an-id"
	f := newFixture(t, gone)
	f.delete(newCluster())

	cluster := f.until("DeletionBlocked", metav1.ConditionTrue, "EndpointChanged")
	says(t, message(cluster, "DeletionBlocked"), "https://elsewhere.example.com", f.omni.Endpoint())
	f.quiet()
}

// A machine that died cannot be reset: the deletion says which, and goes on
// when destroyMachines is set.
func TestDeletionWithADeadMachine(t *testing.T) {
	f := running(t)
	f.omni.KillMachine(f.machines[0])
	f.delete(newCluster())

	cluster := f.until("DeletionBlocked", metav1.ConditionTrue, "WaitingForMachines")
	says(t, message(cluster, "DeletionBlocked"), f.machines[0], "not connected", "since", "destroyMachines")

	if !f.view().Exists {
		t.Fatal("gone already")
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.DestroyMachines = true })
	f.untilGone()

	if f.view().Exists {
		t.Errorf("Omni has %+v", f.view())
	}
}

// Somebody deleted the cluster in Omni: it is not made again without being asked.
func TestRemoteClusterGone(t *testing.T) {
	f := running(t)
	old := f.get().Status.OmniClusterID

	destroyRemotely(f)

	cluster := f.until("Stalled", metav1.ConditionTrue, "RemoteClusterGone")
	says(t, message(cluster, "Stalled"), old, v1alpha1.AnnotationRecreate)
	f.quiet()

	f.edit(func(o *v1alpha1.OmniCluster) { o.Annotations = map[string]string{v1alpha1.AnnotationRecreate: old} })
	f.until("Ready", metav1.ConditionTrue, "Running")

	if got := f.get().Status.OmniClusterID; got == old || got == "" {
		t.Errorf("omniClusterID %q, before %q", got, old)
	}

	// The permission is used up.
	destroyRemotely(f)
	f.until("Stalled", metav1.ConditionTrue, "RemoteClusterGone")
}

func TestRemoteClusterGoneLetsGo(t *testing.T) {
	f := running(t)
	destroyRemotely(f)
	f.until("Stalled", metav1.ConditionTrue, "RemoteClusterGone")
	f.delete(newCluster())
	f.untilGone()
}

// destroyRemotely deletes the cluster past the controller, as omnictl does.
func destroyRemotely(f *fixture) {
	f.t.Helper()

	lease, open := f.pool.Get("uid-connection")
	if !open {
		f.t.Fatal("no session")
	}
	defer lease.Release()

	f.eventually("the end of the cluster in Omni", func() string {
		if err := lease.Ready("demo"); err != nil {
			return err.Error()
		}

		plan, err := lease.PlanDelete(f.t.Context(), "demo", deleteEverything())
		if err != nil {
			return err.Error()
		}

		if _, err = lease.Apply(f.t.Context(), plan, everythingAllowed()); err != nil {
			return err.Error()
		}

		if f.view().Exists {
			return "still there"
		}

		return ""
	})
}

// A cluster that is torn down in Omni is not planned against.
func TestRemoteDeleting(t *testing.T) {
	f := running(t)
	f.omni.Pause()

	if _, err := f.omni.State().Teardown(t.Context(), clusterPointer()); err != nil {
		t.Fatal(err)
	}

	cluster := f.until("Planned", metav1.ConditionFalse, "RemoteDeleting")
	if apimeta.IsStatusConditionTrue(cluster.Status.Conditions, "Stalled") {
		t.Error("nobody has to act")
	}

	f.quiet()
	f.omni.Resume()
}

// A cluster that is gone waits for nothing of others any more.
func TestGoneClusterWaitsForNothing(t *testing.T) {
	f, told := running(t), &omnitest.Recorded{}

	f.pool.Close()
	f.pool = session.NewPool(t.Context(), session.PoolOptions{
		Runs: testSlots, ClusterChanged: func(_, cluster string) { told.ClusterChanged(cluster) },
	})
	t.Cleanup(f.pool.Close)
	f.connect()
	f.restart()

	f.collide()

	other := newCluster()
	other.Name = "other"
	f.delete(other)
	f.eventually("the end of the object", func() string {
		_, _ = f.loop.Reconcile(t.Context(), request(testNamespace, "other"))

		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(other), other); !apierrors.IsNotFound(err) {
			return strings.Join(shown(other), "\n")
		}

		return ""
	})

	told.Take()
	f.delete(newCluster())
	f.untilGone()

	if told.Told("other") {
		t.Error("a cluster that is gone is told of what it waited for")
	}
}
