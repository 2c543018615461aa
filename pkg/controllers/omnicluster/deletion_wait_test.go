package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
)

// Without a connection nothing can ever have reached Omni.
func TestDeletedBeforeThereWasAConnection(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.ConnectionRef.Name = "absent"
	b := newBench(t, cluster)
	b.run()
	b.delete(newCluster())
	b.untilGone()
}

// The status was wiped or is older than the first sync: the mark in Omni decides,
// as soon as there is a session again.
func TestDeletedWithoutStatusAndSession(t *testing.T) {
	b := running(t)
	b.pool.Forget("uid-connection")
	b.advance(time.Hour) // no grace after a start

	cluster := b.get()
	cluster.Status = v1alpha1.OmniClusterStatus{}

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	b.delete(newCluster())
	b.until("Ready", metav1.ConditionFalse, "ConnectionNotReady")
	b.connect()
	b.untilGone()

	if b.view().Exists {
		t.Error("the cluster was left behind")
	}
}

// A session that is missing for a moment does not block an old deletion, nor does
// it make another one of its message.
func TestOldDeletionWaitsForASession(t *testing.T) {
	b := running(t)
	b.omni.KillMachine(b.machines[0])
	b.delete(newCluster())
	b.until("DeletionBlocked", metav1.ConditionTrue, "WaitingForMachines")
	b.quiet()

	writes := b.writes

	b.pool.Forget("uid-connection")
	b.advance(time.Hour)
	b.run()

	if b.writes != writes {
		t.Errorf("the status says %v", shown(b.get()))
	}

	b.advance(consent.OutageTimeout)
	b.until("DeletionBlocked", metav1.ConditionTrue, "ConnectionNotReady")
	b.restart()
	b.run()
	b.advance(sessionGrace)
	b.run()
	b.until("DeletionBlocked", metav1.ConditionTrue, "ConnectionNotReady")
}

// Setting orphan late does not leave the mark because of a moment without a session.
func TestLateOrphanWaitsForASession(t *testing.T) {
	b := running(t)
	cluster := b.get()
	cluster.Status.OmniClusterID = "another"

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	b.delete(newCluster())
	b.until("DeletionBlocked", metav1.ConditionTrue, "RemoteClusterReplaced")
	b.advance(time.Hour)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	b.pool.Forget("uid-connection")
	b.run()
	b.connect()
	b.untilGone()

	if view := b.view(); !view.Exists || view.Annotations[v1alpha1.MarkOwnerUID] != "" {
		t.Errorf("Omni has %+v, events %q", view, b.seen)
	}
}
