package omnikubeconfigexport

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// secretIn reads a Secret of any namespace; nil if there is none.
func (f *fixture) secretIn(namespace, name string) *corev1.Secret {
	f.t.Helper()

	found := &corev1.Secret{}
	err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, found)
	f.must(client.IgnoreNotFound(err))

	if err != nil {
		return nil
	}

	return found
}

func targets(namespace, name string) func(*v1alpha1.OmniKubeconfigExportSpec) {
	return func(spec *v1alpha1.OmniKubeconfigExportSpec) {
		spec.TargetSecretRef.Namespace, spec.TargetSecretRef.Name = namespace, name
	}
}

// The Secret of another namespace is written, kept, moved and deleted as one of the export's own.
func TestTargetInAnotherNamespace(t *testing.T) {
	f := newFixture(t)
	f.edit(targets(fluxNamespace, "access"))
	f.ready()

	secret := f.secretIn(fluxNamespace, "access")
	if secret == nil || secret.Annotations[v1alpha1.AnnotationExportNamespace] != namespace || f.secret("access") != nil {
		t.Fatalf("%+v", secret)
	}

	want := &v1alpha1.TargetSecretReference{Name: "access", Namespace: fluxNamespace, Key: "kubeconfig"}
	if diff := cmp.Diff(want, f.get().Status.TargetSecretRef); diff != "" {
		t.Errorf("status.targetSecretRef (-want +got):\n%s", diff)
	}

	requests := f.reconciler.exportsOfSecret(t.Context(), secret)
	if len(requests) == 0 || requests[0] != (reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "automation"}}) {
		t.Errorf("an event of the Secret wakes %v", requests)
	}

	f.edit(targets("", "access"))
	f.ready()

	if f.secretIn(fluxNamespace, "access") != nil || f.secret("access") == nil {
		t.Error("the Secret did not move")
	}

	f.edit(targets(fluxNamespace, "access"))
	f.ready()

	if f.secretIn(fluxNamespace, "access") == nil || f.secret("access") != nil {
		t.Error("the Secret did not move back")
	}

	f.must(f.client.Delete(t.Context(), f.get()))
	f.run()

	if f.secretIn(fluxNamespace, "access") != nil {
		t.Error("the Secret is still there")
	}
}

// Where nobody allowed it nothing is written, and what is there is nobody's business.
func TestTargetNamespaceNotAllowed(t *testing.T) {
	f := newFixture(t)
	f.edit(targets("elsewhere", "access"))
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed, `Secret "elsewhere/access" is not written`, "--export-namespaces")

	if f.secretIn("elsewhere", "access") != nil || f.asked() != 0 {
		t.Error("something was issued")
	}

	f.must(f.client.Delete(t.Context(), f.get()))
	f.run()

	if err := f.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "automation"}, &v1alpha1.OmniKubeconfigExport{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the export stays: %v", err)
	}
}

// A Secret in a namespace that was taken away from exports is out of reach: the export waits, and says what to do.
func TestTargetNamespaceTakenAway(t *testing.T) {
	f := newFixture(t)
	f.edit(targets(fluxNamespace, "access"))
	f.ready()

	f.reconciler.options.Namespaces = nil
	f.must(f.client.Delete(t.Context(), f.get()))
	f.run()

	stalled := f.get()
	if got := describe(stalled.Status.Conditions, v1alpha1.ConditionReady); got != v1alpha1.ReasonNamespaceNotAllowed {
		t.Errorf("Ready has the reason %q: %+v", got, stalled.Status.Conditions)
	}

	f.edit(func(spec *v1alpha1.OmniKubeconfigExportSpec) { spec.DeletionPolicy = v1alpha1.DeletionOrphan })
	f.run()

	if f.secretIn(fluxNamespace, "access") == nil {
		t.Error("the Secret is gone")
	}

	if err := f.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "automation"}, &v1alpha1.OmniKubeconfigExport{}); err == nil {
		t.Error("the export stays")
	}
}

// The target moves out of a namespace that was taken away from exports: the Secret there is not forgotten, and goes when
// the namespace is given back.
func TestTargetMovesOutOfANamespaceTakenAway(t *testing.T) {
	f := newFixture(t)
	f.edit(targets(fluxNamespace, "access"))
	f.ready()

	f.reconciler.options.Namespaces = nil
	f.edit(targets("", "target"))
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed, `Secret "flux-system/access" is to be deleted`)
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed, `Secret "flux-system/access" is to be deleted`)

	if f.secret("target") == nil {
		t.Error("the new Secret is missing")
	}

	f.reconciler.options.Namespaces = []string{fluxNamespace}
	f.ready()

	if status := f.get().Status.TargetSecretRef; f.secretIn(fluxNamespace, "access") != nil || status.Name != "target" || status.Namespace != "" {
		t.Errorf("the Secret is still there; status %+v", status)
	}
}

// A Secret that an export of another namespace made is theirs, whether it lives or not.
func TestTargetOfAnotherNamespacesExport(t *testing.T) {
	f := newFixture(t)
	f.edit(targets(fluxNamespace, "access"))
	f.ready()

	secret := f.secretIn(fluxNamespace, "access")
	secret.Labels[v1alpha1.LabelExportUID] = "uid-theirs"
	secret.Annotations[v1alpha1.AnnotationExportNamespace] = "team-b"
	f.must(f.client.Update(t.Context(), secret))
	f.edit(adopts)
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `Secret "flux-system/access" is not adopted`, `it was made for OmniKubeconfigExport "team-b/automation"`)
}

func describe(conditions []metav1.Condition, of string) string {
	for _, condition := range conditions {
		if condition.Type == of {
			return condition.Reason
		}
	}

	return ""
}
