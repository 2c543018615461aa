package omnisecretsync

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// What belongs to the installation, to a ServiceAccount or to Helm is copied by nobody.
func TestProtectedSourceIsNotCopied(t *testing.T) {
	policy := sources.Policy{Protected: []types.NamespacedName{{Namespace: "fleet", Name: "omni-apiserver-ca"}}}

	for name, kind := range map[string]corev1.SecretType{
		"omni-apiserver-ca": corev1.SecretTypeTLS, "token": corev1.SecretTypeServiceAccountToken, "record": "helm.sh/release.v1",
	} {
		source := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}, Type: kind, Data: map[string][]byte{"tls.key": []byte("canary")},
		}
		s := scopeOf(t, nil)
		s.sync.Spec.SourceSecretRef.Name, s.want = name, content{}

		r := newReconciler(nil, policy.Reader(fake.NewClientBuilder().WithObjects(source).Build()), nil, Options{HubID: thisHub})

		outcome, err := r.findSource(t.Context(), s)
		if err != nil || outcome.Reason() != v1alpha1.ReasonSecretProtected || !strings.Contains(outcome.Message(), name) {
			t.Errorf("%s: %s: %s, %v", name, outcome.Reason(), outcome.Message(), err)
		}

		if len(s.want.data) != 0 {
			t.Errorf("%s would be copied", name)
		}
	}
}
