package helm

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// echo is a gateway before a cluster that answers everything with what it was sent.
func echo(t *testing.T, user string) *clusteraccess.Cluster {
	t.Helper()

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()

		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = fmt.Fprintf(w, "upstream failed: Authorization: %s %s", r.Header.Get("Authorization"), password)
	}))
	t.Cleanup(server.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	cluster, err := clusteraccess.NewClusters(nil, dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}).Get(t.Context(), clusteraccess.Key{}, fmt.Appendf(nil, `current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: '%s', certificate-authority-data: %s}}]
users: [{name: it, user: {%s}}]`, server.URL, base64.StdEncoding.EncodeToString(ca), user))
	if err != nil {
		t.Fatal(err)
	}

	return cluster
}

// What a server sends back of the kubeconfig is in no error and in no line of the log.
func TestEchoedCredentialsAreRemoved(t *testing.T) {
	for name, user := range map[string]string{"token": "token: s3cret-token", "password": `username: me, password: 's3cret"password'`} {
		cluster := echo(t, user)
		encoded := base64.StdEncoding.EncodeToString([]byte(`me:s3cret"password`))

		check := func(t *testing.T, where, text string) {
			t.Helper()

			if strings.Contains(text, "s3cret") || strings.Contains(text, encoded) {
				t.Errorf("%s shows the credentials: %s", where, text)
			}
		}

		log := funcr.New(func(_, line string) { check(t, "the log", line) }, funcr.Options{Verbosity: 9})
		c := New(Target{Config: cluster.RESTConfig(), Scrub: cluster.Scrub, Name: "demo", Namespace: "apps", Renderers: render.New(render.Options{})}, log, time.Second)
		run := func(action Action, observed *Observed) func(context.Context) error {
			return func(ctx context.Context) error {
				return c.Run(ctx, Request{
					Decision: Decision{Action: action, Revision: 1}, Observed: observed, Chart: packed{chartserver.ConfigMapChart("demo", "1.0.0")},
					Settings: Settings{Timeout: 10 * time.Second, CreateNamespace: true, MaxHistory: 1},
				})
			}
		}
		known := &Observed{Revisions: []Revision{{Number: 1, Status: StatusDeployed}}}

		for doing, do := range map[string]func(context.Context) error{
			"observe":   func(ctx context.Context) error { _, err := c.Observe(ctx); return err },
			"details":   func(ctx context.Context) error { _, err := c.Details(ctx, 1); return err },
			"drift":     func(ctx context.Context) error { _, err := c.Drift(ctx, 1, nil); return err },
			"install":   run(ActionInstall, &Observed{}),
			"upgrade":   run(ActionUpgrade, known),
			"rollback":  run(ActionRollback, known),
			"test":      run(ActionTest, known),
			"unlock":    run(ActionUnlock, known),
			"uninstall": run(ActionUninstall, nil),
		} {
			t.Run(doing+" with a "+name, func(t *testing.T) {
				err := do(await.Context(t))

				var failure *Error
				if !errors.As(err, &failure) {
					t.Fatalf("got %v, want an *Error", err)
				}

				if check(t, "the error", err.Error()); !strings.Contains(err.Error(), "upstream failed") || !strings.Contains(err.Error(), "[removed]") {
					t.Errorf("the error does not say what the server said: %v", err)
				}
			})
		}
	}
}
