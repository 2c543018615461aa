package omnihelmrelease

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// A release whose cluster cannot be used while it is deleted, through the real access: nothing is uninstalled anywhere,
// what may heal is waited for and named, and what is left behind as well.
func TestDeletionWithoutTheRightCluster(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"another"}}`)
	}))
	t.Cleanup(server.Close)

	for name, test := range map[string]struct {
		kubeconfig []byte // nil: there is none
		orphaned   bool   // its OmniCluster is gone
		waits      bool
		says       string
	}{
		"KubeconfigNotFound":           {nil, false, false, `Secret "access" does not exist`},
		"UnsafeKubeconfig":             {kubeconfigFor(server, "tokenFile: /token"), false, true, "user.tokenFile"},
		"UnsafeKubeconfig, no parent":  {kubeconfigFor(server, "tokenFile: /token"), true, false, "user.tokenFile"},
		"KubeconfigInvalid":            {[]byte("none"), false, true, `Secret "access"`},
		"WrongCluster":                 {kubeconfigFor(server, "token: t"), false, true, `back into Secret "access"`},
		"WrongCluster, without parent": {kubeconfigFor(server, "token: t"), true, false, `back into Secret "access"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.ClusterRef.Name, r.Spec.KubeconfigSecretRef.Name = "demo", "access"
			})
			f.settle()
			f.admit(test.kubeconfig, !test.orphaned)
			f.remove()
			f.lookIn()

			if test.waits {
				for _, condition := range []string{v1alpha1.ConditionDeletionBlocked, v1alpha1.ConditionReady} {
					status := yes
					if condition == v1alpha1.ConditionReady {
						status = no
					}

					// Nobody is told to accept a wrong cluster, but what lets go of it.
					message := f.want(condition, status, name)
					if !strings.Contains(message, test.says) || !strings.Contains(message, "set spec.deletionPolicy to Orphan") || strings.Contains(message, "accept-cluster") {
						t.Error(message)
					}
				}

				for range 13 { // a little more than the hour
					f.pass(5 * time.Minute)
					f.lookIn()
				}
			}

			if said := f.said(); !f.gone() || !strings.Contains(said, "LeftBehind") || !strings.Contains(said, test.says) {
				t.Errorf("gone: %t, events: %s", f.gone(), said)
			}

			f.wantActions(helm.ActionInstall)
		})
	}
}

// admit puts the real access in place of the open one.
func (f *fixture) admit(kubeconfig []byte, parent bool) {
	f.t.Helper()

	if kubeconfig != nil {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "access"}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
		if err := f.client.Create(f.t.Context(), secret); err != nil {
			f.t.Fatal(err)
		}
	}

	if parent {
		if err := f.client.Create(f.t.Context(), &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}); err != nil {
			f.t.Fatal(err)
		}
	}

	f.owners = hubs.NewOwners()
	f.r.access = &clusteraccess.Access{
		Clusters: clusteraccess.NewClusters(f.now, dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
		Client:   f.client, Live: f.client, HubID: thisHub, Owners: f.owners,
	}
}

// lookIn looks until the cluster has been asked.
func (f *fixture) lookIn() {
	f.t.Helper()

	for f.look(); !f.gone(); f.look() {
		ready := apimeta.FindStatusCondition(f.get().Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, "waiting for the workload cluster") {
			return
		}
	}
}
