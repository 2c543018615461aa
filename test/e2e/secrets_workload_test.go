package e2e

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The secrets of what reaches into workload clusters.
const (
	canaryValue    = "c4n4ry-0f-4-s0urc3"
	canaryToken    = "c4n4ry-0f-4-t0k3n"
	canaryPassword = "c4n4ry-0f-4-ch4rt-r3p0"
)

// newEcho is a workload cluster that shows its version, has nothing, and refuses every write with all that it was
// sent: the credentials and the body.
func newEcho(t *testing.T) string {
	t.Helper()

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		code, reason, sent := http.StatusNotFound, "NotFound", r.Header.Get("Authorization")

		switch {
		case r.URL.Path == "/version":
			_, _ = fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)

			return
		case strings.HasSuffix(r.URL.Path, "/namespaces/kube-system"):
			code, reason = http.StatusForbidden, "Forbidden"
		case r.Method != http.MethodGet:
			body, _ := io.ReadAll(r.Body)
			code, reason, sent = http.StatusBadRequest, "BadRequest", sent+" "+canaryValue+" "+string(body)
		}

		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, reason, code, "it said "+sent)
	}))
	t.Cleanup(server.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	return fmt.Sprintf(`current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: '%s', certificate-authority-data: %s}}]
users: [{name: it, user: {token: %s}}]`, server.URL, base64.StdEncoding.EncodeToString(ca), canaryToken)
}

// A source's values, a kubeconfig's credentials and the password of a chart repository are shown nowhere: not when all
// is well, not when a cluster refuses what it is sent and repeats it, not when a repository does.
func TestWorkloadSecretsAreNeverShown(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(sourceManifest(canaryValue), rawKubeconfigManifest("echo-kubeconfig", newEcho(t)),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: auth}\ntype: kubernetes.io/basic-auth\nstringData: {username: robot, password: "+canaryPassword+"}",
		strings.NewReplacer("name: registry\nspec", "name: echoed\nspec", "demo-kubeconfig", "echo-kubeconfig").Replace(r.syncManifest("pull", "  deletionPolicy: Orphan")),
		r.syncManifest("pull", deletes))
	r.ready("oss", "registry")
	r.waitCondition("oss", "echoed", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRefused)

	// The repository is asked with the password, refuses it and repeats it; then it is content.
	r.charts.Handle("/index.yaml", func(w http.ResponseWriter, request *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, "it said "+request.Header.Get("Authorization"))
	})
	r.apply(r.release("    authSecretRef: {name: auth}"))
	r.stalls("app", v1alpha1.ReasonChartUnauthorized)

	secrets := []string{canaryValue, canaryToken, canaryPassword, base64.StdEncoding.EncodeToString([]byte("robot:" + canaryPassword))}
	r.showNowhere(secrets...)

	r.charts.Handle("/index.yaml", nil)
	r.charts.Protect("robot", canaryPassword)
	r.apply(r.release("    authSecretRef: {name: auth}", "  timeout: 1m"))
	r.run("annotate", "--overwrite", "ohr", "app", v1alpha1.AnnotationReconcileRequestedAt+"=now")
	r.ready("ohr", "app")

	asked := false
	for _, header := range r.charts.Headers() {
		asked = asked || header.Get("Authorization") != ""
	}

	if !asked {
		t.Error("the password was never sent")
	}

	r.showNowhere(secrets...)
	r.run("delete", "oss,ohr", "--all")
	r.showNowhere(secrets...)
}

// showNowhere looks for secrets, also as base64, in everything that a user or operator can read beside Secrets.
func (s *space) showNowhere(secrets ...string) {
	s.t.Helper()

	metrics, err := stack.Controller.Metrics(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}

	places := map[string]string{
		"objects": s.run("get", "omni", "-o", "yaml"),
		"tables":  s.run("get", "omni", "-o", "wide"),
		"events":  s.run("get", "events", "-o", "yaml"),
		"metrics": metrics,
	}

	for _, path := range []string{stack.Controller.LogPath(), stack.OmniAPIServer.LogPath(), auditPath} {
		data, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatal(err)
		}

		places[path] = string(data)
	}

	for place, text := range places {
		for _, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				if i := strings.Index(text, form); i >= 0 {
					s.t.Errorf("%s shows a secret: ...%s", place, text[max(0, i-200):i])
				}
			}
		}
	}
}
