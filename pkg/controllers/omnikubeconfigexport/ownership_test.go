package omnikubeconfigexport

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestForeignTargetIsNeverWritten(t *testing.T) {
	b := newBench(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "target"}, Data: map[string][]byte{"a": []byte("b")}}
	b.must(b.client.Create(t.Context(), foreign))
	before := b.secret("target")

	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `Secret "target"`, "was not made by an OmniKubeconfigExport")

	if diff := cmp.Diff(before, b.secret("target")); diff != "" || b.asked() != 0 {
		t.Errorf("Omni was asked %d times; the Secret changed:\n%s", b.asked(), diff)
	}

	b.must(b.client.Delete(t.Context(), b.get()))
	b.run()

	if diff := cmp.Diff(before, b.secret("target")); diff != "" {
		t.Errorf("the deletion changed it:\n%s", diff)
	}
}

// Somebody copies the Secret with all that is on it: the copy is nobody's. It is not deleted when the target
// moves or the export goes, and it is not written when it is the next target.
func TestCopyOfTheSecretIsForeign(t *testing.T) {
	b := newBench(t)
	b.ready()

	copied := b.secret("target").DeepCopy()
	copied.Name, copied.UID, copied.ResourceVersion = "copy", "", ""
	b.must(b.client.Create(t.Context(), copied))

	labels := b.secret("target").DeepCopy()
	labels.Name, labels.UID, labels.ResourceVersion, labels.Annotations = "labels", "", "", nil
	b.must(b.client.Create(t.Context(), labels))

	before, labelled := b.secret("copy"), b.secret("labels")

	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "moved" })
	b.ready()

	if b.secret("target") != nil || b.secret("moved") == nil {
		t.Fatal("the target did not move")
	}

	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "copy" })
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `Secret "copy" is not written`, "a copy of Secret \""+namespace+"/target\"")

	b.must(b.client.Delete(t.Context(), b.get()))
	b.run()

	if b.secret("moved") != nil {
		t.Error("the Secret of the export is still there")
	}

	if diff := cmp.Diff(before, b.secret("copy")) + cmp.Diff(labelled, b.secret("labels")); diff != "" {
		t.Errorf("a copy changed:\n%s", diff)
	}
}

// A Secret from before the annotation gets it, and no new kubeconfig.
func TestSecretWithoutItsPlaceIsCompleted(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.editSecret("target", func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationExportSecret) })
	b.ready()

	if got := b.secret("target").Annotations[v1alpha1.AnnotationExportSecret]; got != namespace+"/target" || b.asked() != 1 {
		t.Errorf("the annotation is %q; Omni was asked %d times", got, b.asked())
	}
}

func TestSecondExportWithOneTarget(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.must(b.client.Create(t.Context(), newExport("second")))
	b.export = "second"
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `belongs to OmniKubeconfigExport "automation"`)

	if b.asked() != 1 {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	// The first lets go: the second takes over.
	b.export = "automation"
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "elsewhere" })
	b.ready()
	b.export = "second"
	b.ready()
}

// TestOwnerLeavesItsSecret: an export with adopt waits for the owner of its target. With deletionPolicy Orphan nothing about
// the Secret changes when the owner goes, so the export itself wakes it.
func TestOwnerLeavesItsSecret(t *testing.T) {
	b := newBench(t)
	b.ready()

	second := newExport("second")
	second.Spec.Adopt = true
	b.must(b.client.Create(t.Context(), second))
	b.export = "second"
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `belongs to OmniKubeconfigExport "automation"`)

	b.export = "automation"
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = v1alpha1.DeletionOrphan })
	b.ready()

	gone := b.get()
	b.must(b.client.Delete(t.Context(), gone))
	b.run()

	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "second"}}}
	if diff := cmp.Diff(want, slices.Compact(b.reconciler.otherClaimants(t.Context(), gone))); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}

	b.export = "second"
	b.ready()
}

func TestTargetMoves(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })

	writes := len(b.writes)
	b.ready()

	want := []string{"create *v1.Secret new", "delete *v1.PartialObjectMetadata target", "status automation"}
	if diff := cmp.Diff(want, b.writes[writes:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// The new target cannot be written: the old one stays, and so does the status.
func TestTargetMovesToAForeignSecret(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.must(b.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}}))
	before := b.get().Status

	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict)

	if b.secret("target") == nil || b.get().Status.TargetSecretRef.Name != "target" || b.get().Status.KubeconfigHash != before.KubeconfigHash {
		t.Errorf("status: %+v", b.get().Status)
	}
}

// A cluster that belongs to the same object on another hub: nobody gets into it from here.
func TestClusterOfAnotherHub(t *testing.T) {
	b := newBench(t)
	b.must(omnisim.AnnotateCluster(t.Context(), b.omni.State(), "production", v1alpha1.MarkHub, "hub-2"))
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonOwnedByOtherHub, "another hub, hub-2", "no kubeconfig")

	if b.asked() != 0 || b.secret("target") != nil {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	b.previous("hub-2")
	b.ready()
}

// Who names a cluster of somebody else does not get into it.
func TestClusterOfSomebodyElse(t *testing.T) {
	b := newBench(t)
	b.must(omnisim.AnnotateCluster(t.Context(), b.omni.State(), "production", v1alpha1.MarkOwnerUID, "another-uid"))
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonNotOwned)

	cluster := &v1alpha1.OmniCluster{}
	b.must(b.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "cluster-01"}, cluster))
	cluster.Status.OmniClusterID = ""
	b.must(b.client.Status().Update(t.Context(), cluster))
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonClusterNotInOmni)

	if b.asked() != 0 || b.secret("target") != nil {
		t.Errorf("Omni was asked %d times", b.asked())
	}
}
