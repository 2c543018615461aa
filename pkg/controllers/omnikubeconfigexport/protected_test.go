package omnikubeconfigexport

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// A Secret that no object may use is not taken over, though it holds a kubeconfig, and nobody is advised to.
func TestProtectedIsNotAdopted(t *testing.T) {
	label := func(s *corev1.Secret) { s.Labels[v1alpha1.LabelProtected] = v1alpha1.ProtectedValue }
	byHand := func(s *corev1.Secret) { s.Labels, s.Annotations = map[string]string{}, nil }

	for name, test := range map[string]struct {
		edits  []func(*corev1.Secret)
		policy sources.Policy
		says   string
	}{
		"by its label":       {[]func(*corev1.Secret){byHand, label}, sources.Policy{}, "is not adopted: it is protected (label " + v1alpha1.LabelProtected + ")"},
		"of an export":       {[]func(*corev1.Secret){label}, sources.Policy{}, "it is protected"},
		"by the flag":        {[]func(*corev1.Secret){byHand}, sources.Policy{Protected: []types.NamespacedName{{Namespace: namespace, Name: "target"}}}, "(--protected-secrets)"},
		"a token, by a type": {[]func(*corev1.Secret){func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken }}, sources.Policy{}, "holds the token of a ServiceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()
			before := f.theirs(func(secret *corev1.Secret) {
				for _, edit := range test.edits {
					edit(secret)
				}
			})
			f.reconciler.options.Sources = test.policy

			f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, chooseAnother)
			f.edit(adopts)
			f.expect(metav1.ConditionFalse, v1alpha1.ReasonSecretProtected, test.says, chooseAnother)

			f.must(f.client.Delete(t.Context(), f.get()))
			f.run()

			if diff := cmp.Diff(before, f.secret("target")); diff != "" {
				t.Errorf("the Secret was changed (-before +after):\n%s", diff)
			}

			if got := f.asked(); got != 1 {
				t.Errorf("Omni was asked %d times, want once", got)
			}
		})
	}
}
