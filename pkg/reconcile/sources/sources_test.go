package sources_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

func secretOf(namespace, name string, kind corev1.SecretType, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Finalizers: []string{"example.com/theirs"}},
		Type:       kind, Data: map[string][]byte{"key": []byte("canary")},
	}
}

func TestReader(t *testing.T) {
	policy := sources.Policy{Protected: []types.NamespacedName{{Namespace: "system", Name: "omni-apiserver-ca"}}}

	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   []string // in the refusal; nil: it may be used
	}{
		"an ordinary one":             {secretOf("apps", "db", corev1.SecretTypeOpaque, nil), nil},
		"a certificate":               {secretOf("apps", "tls", corev1.SecretTypeTLS, nil), nil},
		"registry credentials":        {secretOf("apps", "pull", corev1.SecretTypeDockerConfigJson, nil), nil},
		"of another namespace":        {secretOf("apps", "omni-apiserver-ca", corev1.SecretTypeTLS, nil), nil},
		"with another label":          {secretOf("apps", "db", corev1.SecretTypeOpaque, map[string]string{v1alpha1.LabelProtected: "false"}), nil},
		"of the installation":         {secretOf("system", "omni-apiserver-ca", corev1.SecretTypeTLS, nil), []string{`"omni-apiserver-ca"`, "--protected-secrets"}},
		"with the label":              {secretOf("apps", "db", corev1.SecretTypeOpaque, map[string]string{v1alpha1.LabelProtected: "true"}), []string{`"db"`, v1alpha1.LabelProtected}},
		"a token of a ServiceAccount": {secretOf("apps", "token", corev1.SecretTypeServiceAccountToken, nil), []string{`"token"`, "kubernetes.io/service-account-token"}},
		"a bootstrap token":           {secretOf("apps", "token", corev1.SecretTypeBootstrapToken, nil), []string{`"token"`, "bootstrap.kubernetes.io/token"}},
		"a record of Helm":            {secretOf("apps", "sh.helm.release.v1.a.v1", "helm.sh/release.v1", nil), []string{"Helm", "helm.sh/release.v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := policy.Reader(fake.NewClientBuilder().WithObjects(test.secret).Build())
			got := &corev1.Secret{}
			err := live.Get(t.Context(), client.ObjectKeyFromObject(test.secret), got)

			if test.want == nil {
				if err != nil || string(got.Data["key"]) != "canary" {
					t.Errorf("%v, %d keys", err, len(got.Data))
				}

				return
			}

			refused := sources.Refused(err)
			if refused == nil {
				t.Fatalf("got %v, want a refusal", err)
			}

			for _, words := range append(test.want, "Secret of its own") {
				if !strings.Contains(refused.Error(), words) {
					t.Errorf("%q does not say %q", refused, words)
				}
			}

			if len(got.Data) != 0 || len(got.Finalizers) != 1 {
				t.Errorf("a refused Secret has %d keys and %d finalizers", len(got.Data), len(got.Finalizers))
			}
		})
	}
}

func TestReaderOfOtherKinds(t *testing.T) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "apps", Name: "values", Labels: map[string]string{v1alpha1.LabelProtected: "true"},
	}}
	live := sources.Policy{}.Reader(fake.NewClientBuilder().WithObjects(configMap).Build())

	if err := live.Get(t.Context(), client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}

	if err := live.Get(t.Context(), client.ObjectKey{Namespace: "apps", Name: "none"}, &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Error(err)
	}

	if err := live.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
		t.Error(err)
	}

	if err := live.List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Error("Secrets were listed past the policy")
	}
}
