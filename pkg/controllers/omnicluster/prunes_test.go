package omnicluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestDeletionsAreNoted(t *testing.T) {
	var noted prunes

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
	var noted prunes

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
		f.reconciler.prunes.note(other, f.clock(), settleTime)
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

// clusterWithSettings runs a cluster of which one machine has settings of its own.
func clusterWithSettings(t *testing.T) (*fixture, *v1alpha1.OmniMachine) {
	t.Helper()

	f := newFixture(t, newCluster(), newWorkers("w", machineClass, 2))
	settings := newMachineWithSettings(f.machines[0])
	f.create(newControlPlane("cp", f.machines[0]), settings)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	return f, settings
}

// Documents without a finalizer are gone before their OmniCluster, which may stay: what they said stays with it.
func TestNamespaceThatIsDeletedKeepsSettings(t *testing.T) {
	f, settings := clusterWithSettings(t)

	writes := f.remoteWrites()

	f.deleteNamespace()
	f.delete(settings)

	cluster := f.until("Synced", metav1.ConditionFalse, "NamespaceDeleting")
	says(t, message(cluster, "Ready"), "the namespace is being deleted")

	f.advance(100 * settleTime)
	f.until("Synced", metav1.ConditionFalse, "NamespaceDeleting")
	f.quiet()

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// What was approved goes all the same. The settings of what went stay with the others.
func TestNamespaceThatIsDeletedTakesWhatIsApproved(t *testing.T) {
	f, settings := clusterWithSettings(t)

	writes := f.remoteWrites()

	f.deleteNamespace()
	f.delete(settings)
	f.delete(newWorkers("w", machineClass, 1))

	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}

	f.approvePlan()
	f.until("Synced", metav1.ConditionFalse, "NamespaceDeleting")
	f.wantTornDown("MachineSets demo-w")
	f.quiet()
}

// A policy goes with its namespace. That does not let begin what it held.
func TestNamespaceThatIsDeletedKeepsTheVersion(t *testing.T) {
	f := governed(t)
	f.run()
	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = "v1.36.1" })
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")

	writes := f.remoteWrites()

	f.deleteNamespace()
	f.delete(&v1alpha1.OmniRolloutPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testPolicy}})
	f.until("Synced", metav1.ConditionFalse, "NamespaceDeleting")
	f.quiet()

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// Whether the namespace goes is asked only if there is something to write.
func TestNamespaceIsReadForChangesOnly(t *testing.T) {
	f := running(t)
	live := &namespaceReads{Reader: f.reconciler.live}
	f.reconciler.live = live

	f.run()

	if live.count != 0 {
		t.Errorf("an idle cluster read its namespace %d times", live.count)
	}

	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Labels = map[string]string{"a": "b"} })
	f.until("Synced", metav1.ConditionTrue, "")

	if live.count == 0 {
		t.Error("a change was made without reading the namespace")
	}
}

// namespaceReads counts how often a Namespace is read.
type namespaceReads struct {
	client.Reader

	count int
}

func (r *namespaceReads) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, is := object.(*corev1.Namespace); is {
		r.count++
	}

	return r.Reader.Get(ctx, key, object, options...)
}
