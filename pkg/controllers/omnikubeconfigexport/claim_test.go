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
	f := newFixture(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "target"}, Data: map[string][]byte{"a": []byte("b")}}
	f.must(f.client.Create(t.Context(), foreign))
	before := f.secret("target")

	f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `Secret "target"`, "was not made by an OmniKubeconfigExport")

	if diff := cmp.Diff(before, f.secret("target")); diff != "" || f.asked() != 0 {
		t.Errorf("Omni was asked %d times; the Secret changed:\n%s", f.asked(), diff)
	}

	f.must(f.client.Delete(t.Context(), f.get()))
	f.run()

	if diff := cmp.Diff(before, f.secret("target")); diff != "" {
		t.Errorf("the deletion changed it:\n%s", diff)
	}
}

// Somebody copies the Secret with all that is on it: the copy is nobody's. It is not deleted when the target
// moves or the export goes, and it is not written when it is the next target.
func TestCopyOfTheSecretIsForeign(t *testing.T) {
	f := newFixture(t)
	f.ready()

	copied := f.secret("target").DeepCopy()
	copied.Name, copied.UID, copied.ResourceVersion = "copy", "", ""
	f.must(f.client.Create(t.Context(), copied))

	labels := f.secret("target").DeepCopy()
	labels.Name, labels.UID, labels.ResourceVersion, labels.Annotations = "labels", "", "", nil
	f.must(f.client.Create(t.Context(), labels))

	before, labelled := f.secret("copy"), f.secret("labels")

	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "moved" })
	f.ready()

	if f.secret("target") != nil || f.secret("moved") == nil {
		t.Fatal("the target did not move")
	}

	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "copy" })
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `Secret "copy" is not written`, "a copy of Secret \""+namespace+"/target\"")

	f.must(f.client.Delete(t.Context(), f.get()))
	f.run()

	if f.secret("moved") != nil {
		t.Error("the Secret of the export is still there")
	}

	if diff := cmp.Diff(before, f.secret("copy")) + cmp.Diff(labelled, f.secret("labels")); diff != "" {
		t.Errorf("a copy changed:\n%s", diff)
	}
}

// A Secret from before the annotation gets it, and no new kubeconfig.
func TestSecretWithoutItsPlaceIsCompleted(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.editSecret("target", func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationExportSecret) })
	f.ready()

	if got := f.secret("target").Annotations[v1alpha1.AnnotationExportSecret]; got != namespace+"/target" || f.asked() != 1 {
		t.Errorf("the annotation is %q; Omni was asked %d times", got, f.asked())
	}
}

func TestSecondExportWithOneTarget(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.must(f.client.Create(t.Context(), newExport("second")))
	f.export = "second"
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `belongs to OmniKubeconfigExport "automation"`)

	if f.asked() != 1 {
		t.Errorf("Omni was asked %d times", f.asked())
	}

	// The first lets go: the second takes over.
	f.export = "automation"
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "elsewhere" })
	f.ready()
	f.export = "second"
	f.ready()
}

// TestOwnerLeavesItsSecret: an export with adopt waits for the owner of its target. With deletionPolicy Orphan nothing about
// the Secret changes when the owner goes, so the export itself wakes it.
func TestOwnerLeavesItsSecret(t *testing.T) {
	f := newFixture(t)
	f.ready()

	second := newExport("second")
	second.Spec.Adopt = true
	f.must(f.client.Create(t.Context(), second))
	f.export = "second"
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `belongs to OmniKubeconfigExport "automation"`)

	f.export = "automation"
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = v1alpha1.DeletionOrphan })
	f.ready()

	gone := f.get()
	f.must(f.client.Delete(t.Context(), gone))
	f.run()

	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "second"}}}
	if diff := cmp.Diff(want, slices.Compact(f.reconciler.otherClaimants(t.Context(), gone))); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}

	f.export = "second"
	f.ready()
}

func TestTargetMoves(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })

	writes := len(f.writes)
	f.ready()

	want := []string{"create *v1.Secret new", "delete *v1.PartialObjectMetadata target", "status automation"}
	if diff := cmp.Diff(want, f.writes[writes:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// The new target cannot be written: the old one stays, and so does the status.
func TestTargetMovesToAForeignSecret(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.must(f.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}}))
	before := f.get().Status

	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict)

	if f.secret("target") == nil || f.get().Status.TargetSecretRef.Name != "target" || f.get().Status.KubeconfigHash != before.KubeconfigHash {
		t.Errorf("status: %+v", f.get().Status)
	}
}

// A cluster that belongs to the same object on another hub: nobody gets into it from here.
func TestClusterOfAnotherHub(t *testing.T) {
	f := newFixture(t)
	f.must(omnisim.AnnotateCluster(t.Context(), f.omni.State(), "production", v1alpha1.MarkHub, "hub-2"))
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonOwnedByOtherHub, "another hub, hub-2", "no kubeconfig")

	if f.asked() != 0 || f.secret("target") != nil {
		t.Errorf("Omni was asked %d times", f.asked())
	}

	f.previous("hub-2")
	f.ready()
}

// Who names a cluster of somebody else does not get into it.
func TestClusterOfSomebodyElse(t *testing.T) {
	f := newFixture(t)
	f.must(omnisim.AnnotateCluster(t.Context(), f.omni.State(), "production", v1alpha1.MarkOwnerUID, "another-uid"))
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonNotOwned)

	cluster := &v1alpha1.OmniCluster{}
	f.must(f.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "cluster-01"}, cluster))
	cluster.Status.OmniClusterID = ""
	f.must(f.client.Status().Update(t.Context(), cluster))
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonClusterNotInOmni)

	if f.asked() != 0 || f.secret("target") != nil {
		t.Errorf("Omni was asked %d times", f.asked())
	}
}
