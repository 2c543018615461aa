package omnicluster

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestDeletionsAreNoted(t *testing.T) {
	var noted deletions

	now := time.Unix(1000, 0)
	handler := noted.handler(func() time.Time { return now }, settleTime)
	going := metav1.NewTime(now)
	stays := &v1alpha1.OmniWorkers{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet"}}
	goes := &v1alpha1.OmniWorkers{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", DeletionTimestamp: &going}}

	update := func(before, after client.Object) {
		handler.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, nil)
	}
	expect := func(what string, want time.Time) {
		t.Helper()

		if got := noted.in("fleet"); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}

	update(stays, stays)
	expect("nothing is deleted", time.Time{})

	update(stays, goes)
	expect("a deletion begins", now)

	begun := now
	now = now.Add(time.Minute)

	update(goes, goes)
	handler.Delete(t.Context(), event.DeleteEvent{Object: goes}, nil)
	expect("it goes on, and ends", begun)

	handler.Delete(t.Context(), event.DeleteEvent{Object: stays}, nil)
	expect("a deletion without a finalizer", now)

	if got := noted.in("other"); !got.IsZero() {
		t.Errorf("another namespace: %v", got)
	}
}

// Namespaces come and go. What is older than a settle time holds nothing back, and is not kept.
func TestOldDeletionsAreNotKept(t *testing.T) {
	var noted deletions

	now := time.Unix(1000, 0)
	note := func(namespace string) {
		noted.note(&v1alpha1.OmniWorkers{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}, now, settleTime)
	}

	for i := range 100 {
		note(fmt.Sprintf("gone-%d", i))
	}

	now = now.Add(settleTime - time.Second)
	note("kept")

	if len(noted.last) != 101 {
		t.Fatalf("%d namespaces within the settle time, want 101", len(noted.last))
	}

	now = now.Add(time.Second)
	note("new")

	if len(noted.last) != 2 || noted.in("kept").IsZero() || noted.in("new").IsZero() {
		t.Errorf("kept: %v", noted.last)
	}
}

// A prune of a whole fleet deletes one kind after the other. What is left of a cluster in the middle of it is no wish.
func TestDeletionsInTheNamespaceKeepMachines(t *testing.T) {
	f := running(t)
	writes := f.remoteWrites()
	other := &v1alpha1.OmniSecretSync{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace}}

	f.delete(newWorkers("w", machineClass, 1))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	for range 5 {
		f.advance(settleTime - time.Second)
		f.reconciler.deletions.note(other, f.clock(), settleTime)
		f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	}

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}

	f.advance(settleTime)
	f.until("Synced", metav1.ConditionTrue, "")
	f.wantTornDown("MachineSets demo-w")
}

// In a namespace that is being deleted, kinds go in any order, with anything between them.
func TestNamespaceThatIsDeletedKeepsMachines(t *testing.T) {
	f := running(t)
	writes := f.remoteWrites()

	f.deleteNamespace()
	f.delete(newWorkers("w", machineClass, 1))

	cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(t, message(cluster, "Ready"), "its namespace is being deleted")

	f.advance(100 * settleTime)
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}

	f.approvePlan()
	f.until("Synced", metav1.ConditionTrue, "")
	f.wantTornDown("MachineSets demo-w")
}
