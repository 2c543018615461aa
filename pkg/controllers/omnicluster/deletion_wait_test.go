package omnicluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
)

// A machine that was shut down is never counted as disconnected: destroyMachines does not remove it, and the message says what does.
func TestDeletionWaitsForAMachineThatWasShutDown(t *testing.T) {
	f := running(t)
	f.omni.ShutDownMachine(f.machines[0])
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.DestroyMachines = true })
	f.delete(newCluster())

	f.eventually("what to do", func() string {
		f.run()

		return map[bool]string{false: "it says " + message(f.get(), "DeletionBlocked")}[strings.Contains(message(f.get(), "DeletionBlocked"), "as powered off")]
	})
	says(t, message(f.get(), "DeletionBlocked"), f.machines[0]+" (not connected)", "omnictl delete link UUID")

	if err := f.omni.ReviveMachine(f.machines[0]); err != nil {
		t.Fatal(err)
	}

	f.untilGone()
}

// Without a connection nothing can ever have reached Omni.
func TestDeletedBeforeThereWasAConnection(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.ConnectionRef.Name = "absent"
	f := newFixture(t, cluster)
	f.run()
	f.delete(newCluster())
	f.untilGone()
}

// The status was wiped or is older than the first sync: the mark in Omni decides,
// as soon as there is a session again.
func TestDeletedWithoutStatusAndSession(t *testing.T) {
	f := running(t)
	f.pool.Forget("uid-connection")
	f.advance(time.Hour) // no grace after a start

	cluster := f.get()
	cluster.Status = v1alpha1.OmniClusterStatus{}

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.delete(newCluster())
	f.until("Ready", metav1.ConditionFalse, "ConnectionNotReady")
	f.connect()
	f.untilGone()

	if f.view().Exists {
		t.Error("the cluster was left behind")
	}
}

// A session that is missing for a moment does not block an old deletion, nor does
// it make another one of its message.
func TestOldDeletionWaitsForASession(t *testing.T) {
	f := running(t)
	f.omni.KillMachine(f.machines[0])
	f.delete(newCluster())
	f.until("DeletionBlocked", metav1.ConditionTrue, "WaitingForMachines")
	f.quiet()

	writes := f.writes

	f.pool.Forget("uid-connection")
	f.advance(time.Hour)
	f.run()

	if f.writes != writes {
		t.Errorf("the status says %v", shown(f.get()))
	}

	f.advance(consent.OutageTimeout)
	f.until("DeletionBlocked", metav1.ConditionTrue, "ConnectionNotReady")
	f.restart()
	f.run()
	f.advance(session.StartGrace)
	f.run()
	f.until("DeletionBlocked", metav1.ConditionTrue, "ConnectionNotReady")
}

// Setting orphan late does not leave the mark because of a moment without a session.
func TestLateOrphanWaitsForASession(t *testing.T) {
	f := running(t)
	cluster := f.get()
	cluster.Status.OmniClusterID = "another"

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.delete(newCluster())
	f.until("DeletionBlocked", metav1.ConditionTrue, "RemoteClusterReplaced")
	f.advance(time.Hour)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	f.pool.Forget("uid-connection")
	f.run()
	f.connect()
	f.untilGone()

	if view := f.view(); !view.Exists || view.Annotations[v1alpha1.MarkOwnerUID] != "" {
		t.Errorf("Omni has %+v, events %q", view, f.events.All())
	}
}
