package deploy

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// eventuallyTimeout is for slow machines; the happy path takes seconds.
const eventuallyTimeout = 3 * time.Minute

// startHub starts a management cluster with the definitions of cert-manager and the Prometheus operator.
func startHub(t *testing.T) *env.Hub {
	t.Helper()

	hub, err := env.StartHub(t.Context(), env.Options{Dir: t.TempDir(), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	if err := hub.InstallDefinitions(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{
		{"apply", "-f", filepath.Join(baseDir, "namespace.yaml")},
		{"create", "namespace", "team-a"},
		{"create", "namespace", "team-b"},
		{"create", "namespace", "flux-system"},
		{"create", "namespace", "argocd"},
	} {
		kubectl(t, hub, "", args...)
	}

	return hub
}

// kubectl runs kubectl as the administrator and fails the test if it fails.
func kubectl(t *testing.T, hub *env.Hub, stdin string, args ...string) string {
	t.Helper()

	stdout, stderr, err := hub.KubectlInput(t.Context(), strings.NewReader(stdin), args...)
	if err != nil {
		t.Fatal(err)
	}

	if strings.Contains(stderr, "Warning:") {
		t.Errorf("kubectl %s warns: %s", strings.Join(args, " "), stderr)
	}

	return stdout
}

// pollPause is the pause between two processes of kubectl that ask for the same thing: each takes time of all other tests.
const pollPause = 250 * time.Millisecond

// eventually polls kubectl until it succeeds and check accepts its output.
func eventually(t *testing.T, hub *env.Hub, what string, check func(stdout string) error, args ...string) {
	t.Helper()

	if err := env.Eventually(t.Context(), eventuallyTimeout, what, func(ctx context.Context) error {
		stdout, _, err := hub.Kubectl(ctx, args...)
		if err == nil {
			err = check(stdout)
		}

		if err != nil {
			time.Sleep(pollPause)
		}

		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// accountToken is a real token of a service account of the release's namespace.
func accountToken(t *testing.T, hub *env.Hub, account string) string {
	t.Helper()

	hour := int64(3600)

	answer, err := hub.Client().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return answer.Status.Token
}

// tokenKubeconfig writes a kubeconfig with a token of a service account of the release, as a Pod would have one.
func tokenKubeconfig(t *testing.T, hub *env.Hub, account string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), account)
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: hub.URL(), CertificateAuthorityData: hub.CA()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"hub": {Token: accountToken(t, hub, account)}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "hub"}},
		CurrentContext: "hub",
	}, path); err != nil {
		t.Fatal(err)
	}

	return path
}

// connectAPI does what the cluster network and cert-manager's cainjector would do: the Service leads to the port on
// loopback, and the APIService gets the authority from the Secret of the Certificate that its annotation names, unless it
// has one already.
func connectAPI(t *testing.T, hub *env.Hub, registration *unstructured.Unstructured, secrets map[string]map[string]string, port int) {
	t.Helper()

	change := map[string]any{"service": map[string]any{"port": port}}

	if _, given, _ := unstructured.NestedString(registration.Object, "spec", "caBundle"); !given {
		from := registration.GetAnnotations()["cert-manager.io/inject-ca-from"]

		secret, ok := strings.CutPrefix(from, namespace+"/")
		if !ok || secrets[secret] == nil {
			t.Fatalf("the APIService takes its authority from %q, which nobody makes", from)
		}

		change["caBundle"] = encoded([]byte(secrets[secret]["ca.crt"]))
	}

	service := text(t, registration.Object, "spec", "service", "name")
	if got := text(t, registration.Object, "spec", "service", "namespace"); got != namespace {
		t.Fatalf("the APIService leads to namespace %q", got)
	}

	// Changed and not made anew: Helm leaves alone what is not its own.
	kubectl(t, hub, "", "patch", "service", service, "-n", namespace, "--type=merge", "-p", fmt.Sprintf(`{"spec": {"type": "ExternalName",
		"externalName": "localhost", "clusterIP": null, "clusterIPs": null, "ports": [{"name": "https", "port": %d}]}}`, port))

	patch, err := json.Marshal(map[string]any{"spec": change})
	if err != nil {
		t.Fatal(err)
	}

	kubectl(t, hub, "", "patch", "apiservice", registration.GetName(), "--type=merge", "-p", string(patch))
	kubectl(t, hub, "", "wait", "apiservice", registration.GetName(), "--for=condition=Available", "--timeout=100s")
}

// encoded is how bytes stand in JSON.
func encoded(content []byte) string { return base64.StdEncoding.EncodeToString(content) }
