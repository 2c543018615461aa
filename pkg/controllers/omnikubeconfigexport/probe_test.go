package omnikubeconfigexport

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// settle runs until the requests under way have ended, and once more.
func (f *fixture) settle() {
	f.t.Helper()
	f.run()

	name := types.NamespacedName{Namespace: namespace, Name: f.export}
	await.Until(f.t, "the answer to the try", func() bool { return !f.reconciler.probes.Pending(name) })
	f.run()
}

// deleteKey deletes Omni's signing keys.
func (f *fixture) deleteKey() {
	f.t.Helper()
	f.must(f.omni.DeleteSigningKeys(f.t.Context()))
}

// tried is how often the kubeconfigs were tried out.
func (f *fixture) tried() int {
	sum := 0
	for _, count := range f.omni.KubernetesProxyAnswers() {
		sum += count
	}

	return sum
}

// An Admin of Omni deletes the signing key: within probePause the export notices it, and gets one other kubeconfig.
func TestDeletedSigningKey(t *testing.T) {
	for _, format := range []v1alpha1.KubeconfigFormat{v1alpha1.FormatKubeconfig, v1alpha1.FormatArgoCD} {
		t.Run(string(format), func(t *testing.T) {
			f := newFixture(t)
			f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.Format = format })
			f.ready()

			if f.tried() != 0 {
				t.Errorf("tried %d times at once: a whole fleet would be", f.tried())
			}

			f.now = f.now.Add(probePause)
			f.settle()

			old := f.get().Status.KubeconfigHash
			if f.tried() != 1 || f.asked() != 1 {
				t.Fatalf("tried %d times, asked %d times, want once each", f.tried(), f.asked())
			}

			f.deleteKey()
			f.now = f.now.Add(probePause)
			f.settle()
			f.ready()

			if f.asked() != 2 || f.get().Status.KubeconfigHash == old || f.told("KubeconfigIssued", "Omni deleted the key") != 1 {
				t.Errorf("Omni was asked %d times; events %v", f.asked(), f.events.All())
			}

			f.now = f.now.Add(probePause)
			f.settle()
			f.ready()

			if f.asked() != 2 || f.tried() != 3 {
				t.Errorf("afterwards: asked %d times, tried %d times", f.asked(), f.tried())
			}

			f.checks(map[string]int{"unanswered": 2, "key_deleted": 1})
		})
	}
}

// checks compares the metric of the tries.
func (f *fixture) checks(want map[string]int) {
	f.t.Helper()

	text := "# HELP omni_kubeconfig_checks_total Requests through Omni's Kubernetes proxy that try the kubeconfigs of OmniKubeconfigExports out, by result.\n" +
		"# TYPE omni_kubeconfig_checks_total counter\n"

	var lines []string
	for result, count := range want {
		lines = append(lines, fmt.Sprintf("omni_kubeconfig_checks_total{result=%q} %d", result, count))
	}

	if err := testutil.CollectAndCompare(f.reconciler.options.Kubeconfigs, strings.NewReader(text+strings.Join(lines, "\n")+"\n"), "omni_kubeconfig_checks_total"); err != nil {
		f.t.Error(err)
	}
}

// A reader of the Secret got a 401: the kubeconfig is tried at once, and not again within a minute.
func TestRefusedReader(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.deleteKey()

	target := types.NamespacedName{Namespace: namespace, Name: "target"}
	if woken := f.reconciler.refusedKubeconfig(t.Context(), target); len(woken) != 1 || woken[0].Name != "automation" {
		t.Fatalf("woken: %v", woken)
	}

	f.settle()
	f.ready()

	if f.asked() != 2 || f.tried() != 1 {
		t.Fatalf("asked %d times, tried %d times", f.asked(), f.tried())
	}

	for range 3 {
		f.reconciler.refusedKubeconfig(t.Context(), target)
		f.settle()
	}

	if f.tried() != 1 {
		t.Errorf("tried %d times within a minute", f.tried())
	}

	f.now = f.now.Add(shortProbePause)
	f.settle()

	if f.tried() != 2 || f.asked() != 2 {
		t.Errorf("a minute later: tried %d times, asked %d times", f.tried(), f.asked())
	}

	if woken := f.reconciler.refusedKubeconfig(t.Context(), types.NamespacedName{Namespace: namespace, Name: "of-somebody"}); len(woken) != 0 {
		t.Errorf("woken by another Secret: %v", woken)
	}
}

// Omni refuses a kubeconfig for another reason: no other one is issued for that, and the object says what Omni says.
func TestRefusedForAnotherReason(t *testing.T) {
	f := newFixture(t)
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.ServiceAccount.Groups = nil }) // Omni issues it, and does not accept it
	f.ready()

	for range 3 {
		f.now = f.now.Add(probePause)
		f.settle()
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonUnauthenticated, `"target"`, "the token is not valid", "spec.ttl")
	}

	if f.asked() != 1 || f.tried() != 3 || f.omni.KubernetesProxyAnswers()[http.StatusUnauthorized] != 3 {
		t.Errorf("asked %d times, tried %d times", f.asked(), f.tried())
	}

	writes := len(f.writes)
	f.restart()
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonUnauthenticated, "the token is not valid")

	if f.tried() != 4 || len(f.writes) != writes {
		t.Errorf("after a restart: tried %d times, wrote %v", f.tried(), f.writes[writes:])
	}

	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.ServiceAccount.Groups = []string{"readers"} })
	f.ready()
}

// A server that calls every key deleted does not get one kubeconfig after the other.
func TestKeyThatIsAlwaysDeleted(t *testing.T) {
	f := newFixture(t)
	f.ready()

	target := types.NamespacedName{Namespace: namespace, Name: "target"}

	for range 9 {
		f.deleteKey()
		f.now = f.now.Add(shortProbePause)
		f.reconciler.refusedKubeconfig(t.Context(), target)
		f.settle()
	}

	if f.asked() != 2 {
		t.Errorf("Omni was asked %d times", f.asked())
	}

	f.expect(metav1.ConditionFalse, v1alpha1.ReasonUnauthenticated, "key not found", "another one is made after ")

	f.now = f.now.Add(probePause)
	f.settle()
	f.ready()
}

// Omni refuses the kubeconfig and issues no other: the Secret stays as it is until there is one.
func TestDeletedSigningKeyWhileOmniDoesNotIssue(t *testing.T) {
	f := newFixture(t)
	f.ready()

	held := f.secret("target")
	f.deleteKey()
	f.now = f.now.Add(probePause)
	remove := f.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})
	f.settle()
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonUnreachable)

	if after := f.secret("target"); after == nil || string(after.Data["value"]) != string(held.Data["value"]) {
		t.Error("the Secret did not stay")
	}

	remove()

	f.now = f.now.Add(time.Minute)
	f.ready()

	if after := f.secret("target"); string(after.Data["value"]) == string(held.Data["value"]) {
		t.Error("there is no new kubeconfig")
	}
}

// A kubeconfig that somebody writes into the Secret is never sent anywhere.
func TestOnlyOwnKubeconfigsAreTried(t *testing.T) {
	f := newFixture(t)
	f.ready()

	remove := f.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})
	defer remove()

	f.editSecret("target", func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("evil") })
	f.now = f.now.Add(probePause)
	f.reconciler.refusedKubeconfig(t.Context(), client.ObjectKeyFromObject(f.secret("target")))
	f.settle()

	if f.tried() != 0 {
		t.Errorf("tried %d times", f.tried())
	}
}
