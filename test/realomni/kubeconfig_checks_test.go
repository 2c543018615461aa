//go:build realomni

package realomni

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// checkKubeconfig looks at a Secret of format Kubeconfig, and returns its token.
func (e *exporter) checkKubeconfig(secret *corev1.Secret, status v1alpha1.OmniKubeconfigExportStatus) string {
	e.Helper()

	if string(secret.Data["kubeconfig"]) != string(secret.Data["value"]) || len(secret.Data) != 2 {
		e.Errorf("%d keys, and value is not kubeconfig", len(secret.Data))
	}

	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		e.Fatal("the kubeconfig cannot be read")
	}

	if ca, err := os.ReadFile(os.Getenv("OMNI_CA_FILE")); err != nil || strings.TrimSpace(string(config.CAData)) != strings.TrimSpace(string(ca)) {
		e.Errorf("the CA of the connection is not in the kubeconfig (%v)", err)
	}

	if sum(secret) != status.KubeconfigHash || config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" {
		e.Error("the kubeconfig is not the one of the status, or more than a token")
	}

	e.checkClaims(config.BearerToken, status)
	e.checkServed(secret, http.StatusBadGateway)

	return config.BearerToken
}

// checkClaims compares what a token says with what was asked for.
func (e *exporter) checkClaims(token string, status v1alpha1.OmniKubeconfigExportStatus) {
	e.Helper()

	var (
		claims tokenClaims
		owner  v1alpha1.OmniCluster
	)

	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		e.Fatal("the token is no JWT")
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		e.Fatal("the token cannot be read")
	}

	e.read("ocl", cluster, &owner)

	slices.Sort(claims.Groups)

	life := time.Duration(claims.Expires-claims.Issued) * time.Second
	if !status.ExpirationTime.Time.Equal(time.Unix(claims.Expires, 0)) || life != 10*time.Minute && life != time.Hour {
		e.Errorf("the token lives for %s, the status says until %s, it says %s", life, status.ExpirationTime, time.Unix(claims.Expires, 0))
	}

	claims.Expires, claims.Issued = 0, 0
	want := tokenClaims{Subject: "robot", Groups: []string{"deployers", "readers"}, Cluster: cluster, ClusterUUID: owner.Status.OmniClusterID}

	if diff := cmp.Diff(want, claims); diff != "" {
		e.Errorf("claims (-want +got):\n%s", diff)
	}
}

// checkArgo looks at a Secret of format ArgoCD.
func (e *exporter) checkArgo(secret *corev1.Secret) {
	e.Helper()

	var config struct {
		BearerToken     string `json:"bearerToken"`
		TLSClientConfig struct {
			CAData []byte `json:"caData"`
		} `json:"tlsClientConfig"`
	}

	if err := json.Unmarshal(secret.Data["config"], &config); err != nil {
		e.Fatal("config cannot be read")
	}

	server := string(secret.Data["server"])
	if string(secret.Data["name"]) != cluster || !strings.HasSuffix(server, "?cluster="+cluster) || len(secret.Data) != 3 || len(config.TLSClientConfig.CAData) == 0 {
		e.Errorf("name %s, server %s, %d keys", secret.Data["name"], server, len(secret.Data))
	}

	e.checkClaims(config.BearerToken, e.status("robot"))

	if code := e.askAs(strings.TrimSuffix(server, "?cluster="+cluster), config.BearerToken); code != http.StatusBadGateway {
		e.Errorf("the proxy: %d, want 502", code)
	}
}

// checkServed asks Omni's proxy with a kubeconfig.
func (e *exporter) checkServed(secret *corev1.Secret, want int) {
	e.Helper()

	if got := e.ask(secret.Data["kubeconfig"]); got != want {
		e.Errorf("Secret %s: the proxy answers %d, want %d", secret.Name, got, want)
	}
}

// letsIn lets an OmniSecretSync use the kubeconfig: it is safe, it is let in, and the cluster does not run.
func (e *exporter) letsIn(secret string) {
	e.Helper()
	e.apply(fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: source}
stringData: {a: b}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniSecretSync
metadata: {name: door}
spec:
  clusterRef: {name: %s}
  kubeconfigSecretRef: {name: %s}
  sourceSecretRef: {name: source}
  targetSecretRef: {name: copy, namespace: default}
  deletionPolicy: Orphan
`, cluster, secret))

	var message string

	if err := env.Eventually(e.Context(), eventually, "the cluster to be unreachable", func(context.Context) error {
		var sync v1alpha1.OmniSecretSync

		e.read("oss", "door", &sync)

		for _, c := range sync.Status.Conditions {
			if c.Type == v1alpha1.ConditionConnected && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonClusterUnreachable &&
				strings.Contains(c.Message, "proxy error") {
				message = c.Message

				return nil
			}
		}

		return fmt.Errorf("conditions %+v", sync.Status.Conditions)
	}); err != nil {
		e.Error(err)
	}

	e.Log(message)
}
