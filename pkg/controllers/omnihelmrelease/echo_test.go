package omnihelmrelease

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// kubeconfigFor writes one with these lines for its user.
func kubeconfigFor(server *httptest.Server, user string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	return fmt.Appendf(nil, `current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: '%s', certificate-authority-data: %s}}]
users: [{name: it, user: {%s}}]`, server.URL, base64.StdEncoding.EncodeToString(ca), user)
}

// A gateway before the workload cluster sends back what it was sent, in an error or as the host of a redirect:
// nothing of it is in a condition or an event.
func TestEchoedTokenIsNotShown(t *testing.T) {
	const token = "s3cret-token"

	redirects := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); {
		case redirects:
			http.Redirect(w, r, "https://"+sent, http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/secrets"): // there is no release yet
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList"}`)
		default:
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprint(w, "upstream failed: "+sent)
		}
	}))
	t.Cleanup(server.Close)

	cluster, err := clusteraccess.NewClusters(nil, dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}).Get(t.Context(), clusteraccess.Key{}, kubeconfigFor(server, "token: "+token))
	if err != nil {
		t.Fatal(err)
	}

	f := newFixture(t)
	f.r.engine = newReconciler(f.client, f.client, f.events, logr.Discard(), f.r.options).engine
	f.access.cluster = cluster

	for _, want := range []string{"upstream failed: [removed]", "redirects to another host ([removed])"} {
		f.pass(time.Minute)

		for range 3 { // the place is noted, the action fails, the failure is shown
			f.run()
		}

		message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonClusterUnreachable)
		if strings.Contains(message, token) || !strings.Contains(message, want) {
			t.Error(message)
		}

		redirects = true
	}

	for _, event := range f.events.New() {
		if strings.Contains(event, token) {
			t.Errorf("an event shows the token: %s", event)
		}
	}
}
