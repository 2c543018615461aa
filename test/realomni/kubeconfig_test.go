//go:build realomni

package realomni

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// rotation is the longest time until the kubeconfig of TestKubeconfig is renewed: one lives for a minute at least.
const rotation = 2 * time.Minute

// exporter is a scenario with a cluster of which kubeconfigs are exported.
type exporter struct {
	*scenario
}

// tokenClaims is what a token of Omni says.
type tokenClaims struct {
	Subject     string   `json:"sub"`
	Groups      []string `json:"groups"`
	Cluster     string   `json:"cluster"`
	ClusterUUID string   `json:"cluster_uuid"`
	Expires     int64    `json:"exp"`
	Issued      int64    `json:"iat"`
}

// A kubeconfig of the real Omni is exported, says what it should, is renewed, moves, changes its form and goes
// with its object. A Reader cannot export one, an Operator can.
func TestKubeconfig(t *testing.T) {
	e := &exporter{&scenario{T: t}}
	e.start()
	e.connectAs("omni", omnisim.RoleOperator)
	e.apply(clusterManifests)
	e.kubectl("wait", "ocl/"+cluster, "--for=condition=Synced", "--timeout=60s")

	e.apply(exportManifest("robot", "access", "  ttl: 10m\n  renewBefore: 9m59s"))
	e.kubectl("wait", "oke/robot", "--for=condition=Ready", "--timeout=60s")

	first, status := e.secret("access"), e.status("robot")
	token := e.checkKubeconfig(first, status)
	e.letsIn("access")

	e.Log("renewal")
	e.hasChanged("robot", status.KubeconfigHash, rotation)

	second, renewed := e.secret("access"), e.status("robot")
	if next := e.checkKubeconfig(second, renewed); next == token || second.UID != first.UID || !status.ExpirationTime.Before(renewed.ExpirationTime) {
		t.Errorf("the same token: %v; UID %s, before %s; %s, before %s", next == token, second.UID, first.UID, renewed.ExpirationTime, status.ExpirationTime)
	}

	// Omni cannot revoke one token: the old one is good until it expires.
	for name, raw := range map[string]*corev1.Secret{"old": first, "new": second} {
		if code := e.ask(raw.Data["kubeconfig"]); code != http.StatusBadGateway {
			t.Errorf("the %s token: %d, want 502: it is let in, and the cluster has no machines", name, code)
		}
	}

	e.Log("another target: the new Secret, then the old one goes")
	e.merge(`{"spec":{"targetSecretRef":{"name":"moved"},"ttl":"1h","renewBefore":"30m"}}`)
	e.hasChanged("robot", renewed.KubeconfigHash, eventually)
	e.kubectl("wait", "oke/robot", "--for=condition=Ready", "--timeout=60s")
	e.kubectl("wait", "secret/access", "--for=delete", "--timeout=90s") // a consumer may hold it for a moment
	e.checkKubeconfig(e.secret("moved"), e.status("robot"))

	e.Log("Argo CD")
	e.merge(`{"spec":{"format":"ArgoCD"}}`)
	e.kubectl("wait", "secret/moved", "--for=jsonpath={.metadata.labels.argocd\\.argoproj\\.io/secret-type}=cluster", "--timeout=60s")
	e.kubectl("wait", "oke/robot", "--for=condition=Ready", "--timeout=60s")
	e.checkArgo(e.secret("moved"))

	e.Log("emptied: written anew")

	// Not its hash tells: Omni's tokens count in seconds, and two of the same second are the same.
	e.kubectl("patch", "secret", "moved", "--type=merge", "-p", `{"data":null}`)
	e.kubectl("wait", "secret/moved", "--for=jsonpath={.data.config}", "--timeout=60s")
	e.checkArgo(e.secret("moved"))

	e.Log("deleted")
	e.kubectl("delete", "oss", "--all", "--timeout=90s")
	e.kubectl("delete", "oke", "robot", "--timeout=60s")
	e.kubectl("wait", "secret/moved", "--for=delete", "--timeout=60s")

	e.readerIsRefused()
	e.recreated()
}

// readerIsRefused: the same cluster through a connection whose account may read only.
func (e *exporter) readerIsRefused() {
	e.Helper()
	e.Log("a Reader is refused")

	// The cluster stays the Operator's: only the key changes.
	e.apply(e.connection("omni", e.account("weak", omnisim.RoleReader)))
	e.apply(exportManifest("weak", "weak", "  ttl: 10m"))
	e.kubectl("wait", "oke/weak", `--for=jsonpath={.status.conditions[?(@.type=="Issued")].reason}=PermissionDenied`, "--timeout=90s")

	if out, _, err := e.stack.Kubectl(e.Context(), "-n", namespace, "get", "secret", "weak", "--ignore-not-found", "-o", "name"); err != nil || out != "" {
		e.Errorf("a Secret without a kubeconfig: %s %v", out, err)
	}

	e.apply(e.connection("omni", e.account("strong", omnisim.RoleOperator)))
	e.kubectl("wait", "oke/weak", "--for=condition=Ready", "--timeout=120s")
	e.checkServed(e.secret("weak"), http.StatusBadGateway)
}

// recreated: the cluster is made again under its name. The old token is refused, and a new one comes by itself.
func (e *exporter) recreated() {
	e.Helper()
	e.Log("the cluster is made again")

	old := e.secret("weak")
	e.kubectl("delete", "ocl", cluster, "--timeout=60s")
	e.apply(clusterManifests)
	e.kubectl("wait", "ocl/"+cluster, "--for=condition=Synced", "--timeout=60s")
	e.checkServed(old, http.StatusForbidden)
	e.hasChanged("weak", sum(old), eventually)
	e.checkServed(e.secret("weak"), http.StatusBadGateway)

	// The next test makes a cluster of this name.
	e.kubectl("delete", "ocl", cluster, "--timeout=60s")
}

// sum is what the annotation says of the kubeconfig.
func sum(secret *corev1.Secret) string { return secret.Annotations[v1alpha1.AnnotationKubeconfigHash] }

// connectAs makes a connection with an account of its own.
func (e *exporter) connectAs(name string, role omnisim.Role) {
	e.Helper()
	e.apply(e.connection(name, e.account("exports-"+name, role)))
	e.kubectl("wait", "oconn/"+name, "--for=condition=Ready", "--timeout=60s")
}

func (e *exporter) connection(name, key string) string {
	e.Helper()

	return strings.NewReplacer(
		os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), key, "metadata: {name: omni}", "metadata: {name: "+name+"}",
		"{name: key, annotations", "{name: key-"+name+", annotations", "{name: key}", "{name: key-"+name+"}",
	).Replace(connectionManifests(e.T))
}

func exportManifest(name, target, lines string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniKubeconfigExport
metadata: {name: %s}
spec:
  clusterRef: {name: %s}
  targetSecretRef: {name: %s}
  serviceAccount: {user: robot, groups: [deployers, readers]}
  deletionPolicy: Delete
%s
`, name, cluster, target, lines)
}

func (e *exporter) merge(patch string) {
	e.Helper()
	e.kubectl("patch", "oke", "robot", "--type=merge", "-p", patch)
}

// read decodes an object of the namespace.
func (e *exporter) read(kind, name string, into any) {
	e.Helper()

	out, _, err := e.stack.Kubectl(e.Context(), "-n", namespace, "get", kind, name, "-o", "json")
	if err = errors.Join(err, json.Unmarshal([]byte(out), into)); err != nil {
		e.Fatal(err)
	}
}

func (e *exporter) secret(name string) *corev1.Secret {
	e.Helper()

	secret := &corev1.Secret{}
	e.read("secret", name, secret)

	return secret
}

func (e *exporter) status(name string) v1alpha1.OmniKubeconfigExportStatus {
	e.Helper()

	export := &v1alpha1.OmniKubeconfigExport{}
	e.read("oke", name, export)

	return export.Status
}

// hasChanged waits for another kubeconfig than the one with this hash.
func (e *exporter) hasChanged(name, hash string, within time.Duration) {
	e.Helper()

	if err := env.Eventually(e.Context(), within, "a new kubeconfig", func(context.Context) error {
		if now := e.status(name); now.KubeconfigHash == hash {
			return fmt.Errorf("conditions %+v", now.Conditions)
		}

		return nil
	}); err != nil {
		e.Fatal(err)
	}
}

func (e *exporter) ask(kubeconfig []byte) int {
	e.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		e.Fatal("the kubeconfig cannot be read")
	}

	return e.askAs(config.Host, config.BearerToken)
}

func (e *exporter) askAs(server, token string) int {
	e.Helper()

	ca, err := os.ReadFile(os.Getenv("OMNI_CA_FILE"))
	if err != nil {
		e.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()

	request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, server+"/version", nil)
	if err != nil {
		e.Fatal(err)
	}

	request.Header.Set("Authorization", "Bearer "+token)

	response, err := (&http.Client{Transport: transport, Timeout: eventually}).Do(request)
	if err != nil {
		e.Fatal(err)
	}
	defer response.Body.Close()

	_, _ = io.Copy(io.Discard, response.Body)

	return response.StatusCode
}
