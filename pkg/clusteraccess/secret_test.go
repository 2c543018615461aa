package clusteraccess

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// TestOtherSecretsAreNotHeld checks that Secrets with other owners are refused, and lose a finalizer that was added by
// mistake.
func TestOtherSecretsAreNotHeld(t *testing.T) {
	const theirs = "example.com/theirs"

	for _, kind := range []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken, "helm.sh/release.v1"} {
		for name, finalizers := range map[string][]string{"not held": {theirs}, "held": {theirs, v1alpha1.KubeconfigInUseFinalizer}} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				var asked atomic.Int32

				access, release := visit{}.come(t, &asked)
				access.Live = sources.Policy{}.Reader(access.Client)
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", Finalizers: finalizers}, Type: kind}
				secret.Data = map[string][]byte{"kubeconfig": kubeconfig("server: 'https://127.0.0.1:1'", "token: s3cret")}

				if err := access.Client.Create(t.Context(), secret); err != nil {
					t.Fatal(err)
				}

				release.Spec.KubeconfigSecretRef.Name = "other"

				opened, outcome, err := access.Open(t.Context(), RequesterOf(release, nil))
				if err != nil || opened != nil || outcome.Reason() != v1alpha1.ReasonSecretProtected || !strings.Contains(outcome.Message(), string(kind)) {
					t.Errorf("%s: %s, %v", outcome.Reason(), outcome.Message(), err)
				}

				after := &corev1.Secret{}
				if err := access.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), after); err != nil {
					t.Fatal(err)
				}

				if !slices.Equal(after.Finalizers, []string{theirs}) || asked.Load() != 0 {
					t.Errorf("finalizers %v, %d requests", after.Finalizers, asked.Load())
				}
			})
		}
	}
}

// TestHeldBeforeTheFirstRequest checks that the Secret gets its finalizer before the first request: a process that ends
// in between leaves nothing behind in a cluster.
func TestHeldBeforeTheFirstRequest(t *testing.T) {
	var requests atomic.Int32

	access, release := visit{}.come(t, &requests)
	held := make(chan bool, 1)

	content := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		secret := &corev1.Secret{}
		err := access.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "access"}, secret)

		select {
		case held <- err == nil && slices.Contains(secret.Finalizers, v1alpha1.KubeconfigInUseFinalizer):
		default:
		}

		http.Error(w, "no", http.StatusForbidden)
	})

	secret := &corev1.Secret{}
	if err := access.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "access"}, secret); err != nil {
		t.Fatal(err)
	}

	secret.Data["kubeconfig"] = content
	if err := access.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	if _, _, err := access.Open(t.Context(), RequesterOf(release, nil)); err != nil {
		t.Fatal(err)
	}

	if !<-held {
		t.Error("the cluster was asked before the Secret was held")
	}
}
