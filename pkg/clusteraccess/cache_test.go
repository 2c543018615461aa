package clusteraccess

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// connections tracks the open connections of a server.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (c *connections) note(connection net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if state == http.StateClosed {
		delete(c.open, connection)
	} else {
		c.open[connection] = struct{}{}
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.open)
}

// TestConnectionsAreClosed checks that an unused kubeconfig leaves no connection behind: they would add up with each
// rotation.
func TestConnectionsAreClosed(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, clusters *Clusters, config []byte, pass func(time.Duration)){
		"another kubeconfig": func(t *testing.T, clusters *Clusters, config []byte, _ func(time.Duration)) {
			t.Helper()
			get(t, clusters, append(config, '\n'))
		},
		"the Secret is gone": func(_ *testing.T, clusters *Clusters, _ []byte, _ func(time.Duration)) {
			clusters.Forget(key().NamespacedName)
		},
		"nobody uses it": func(t *testing.T, clusters *Clusters, config []byte, pass func(time.Duration)) {
			t.Helper()
			pass(unusedFor)

			if _, err := clusters.Get(t.Context(), Key{NamespacedName: types.NamespacedName{Name: "other"}}, config); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &connections{open: map[net.Conn]struct{}{}}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
			}))
			server.Config.ConnState = seen.note
			server.StartTLS()
			t.Cleanup(server.Close)

			ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
			config := kubeconfig(fmt.Sprintf("server: '%s', certificate-authority-data: %s", server.URL, ca), "token: t")

			now := time.Now()
			clusters := NewClusters(func() time.Time { return now }, loopback())

			if _, err := identifyFinally(t, get(t, clusters, config)); err != nil || seen.count() != 1 {
				t.Fatalf("%d connections are open, %v", seen.count(), err)
			}

			end(t, clusters, config, func(time time.Duration) { now = now.Add(time) })

			await.Until(t, "no connection is left", func() bool { return seen.count() == 0 })
		})
	}
}
