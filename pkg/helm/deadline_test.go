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
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// A cluster that refuses everything and wants to be asked again tomorrow delays nothing beyond its time: Helm waits for that
// without a context.
func TestAClusterThatWantsLongWaits(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
		to.Header().Set("Content-Type", "application/json")
		to.Header().Set("Retry-After", "86400")
		refuse(to, apierrors.NewTooManyRequests("tomorrow", 86400))
	}))
	t.Cleanup(server.Close)

	c := New(Target{Config: accessTo(t, server), Name: "demo", Namespace: "apps"}, logr.Discard(), time.Second)

	for name, do := range map[string]func(context.Context) error{
		"details": func(ctx context.Context) error {
			_, err := c.Details(ctx, 1)

			return err
		},
		"drift": func(ctx context.Context) error {
			_, err := c.Drift(ctx, 1, nil)

			return err
		},
		"correct": func(ctx context.Context) error {
			_, err := c.Correct(ctx, 1, nil, mayBegin)

			return err
		},
		"uninstall": func(ctx context.Context) error {
			return c.Run(ctx, Request{
				Decision: Decision{Action: ActionUninstall}, Settings: Settings{Timeout: time.Second},
				Observed: &Observed{Revisions: []Revision{{Number: 1, Status: StatusDeployed}}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()

			ended := make(chan error, 1)

			go func() { ended <- do(ctx) }()

			var failure *Error
			if err := await.Receive(t, "the end of its time", ended); !errors.As(err, &failure) || failure.Still != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// accessTo makes the configuration with which releases reach a workload cluster.
func accessTo(t *testing.T, server *httptest.Server) *rest.Config {
	t.Helper()

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig := fmt.Sprintf("clusters: [{name: it, cluster: {server: '%s', certificate-authority-data: %s}}]\n"+
		"contexts: [{name: it, context: {cluster: it, user: it}}]\ncurrent-context: it\nusers: [{name: it, user: {token: t}}]\n",
		server.URL, base64.StdEncoding.EncodeToString(ca))

	clusters := clusteraccess.NewClusters(nil, dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	key := clusteraccess.Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "access"}, SecretKey: "kubeconfig"}

	cluster, err := clusters.Get(t.Context(), key, []byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}

	return cluster.RESTConfig()
}
