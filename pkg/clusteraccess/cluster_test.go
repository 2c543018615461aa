package clusteraccess

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// serve starts an https server and returns a kubeconfig for it.
func serve(t *testing.T, handler http.HandlerFunc) []byte {
	t.Helper()

	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	return kubeconfig(fmt.Sprintf("server: '%s', certificate-authority-data: %s", server.URL, base64.StdEncoding.EncodeToString(ca)), "token: s3cret-token")
}

// key returns the key of the kubeconfig of these tests.
func key() Key {
	return Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "demo-kubeconfig"}, SecretKey: "kubeconfig"}
}

func get(t *testing.T, clusters *Clusters, config []byte) *Cluster {
	t.Helper()

	cluster, err := clusters.Get(t.Context(), key(), config)
	if err != nil {
		t.Fatal(err)
	}

	return cluster
}

// HTTP/2 has frames that are part of no answer, so no bound would count them.
func TestClustersAreAskedByHTTP1(t *testing.T) {
	var protocol atomic.Value

	cluster := get(t, NewClusters(nil, loopback()), serve(t, func(_ http.ResponseWriter, r *http.Request) { protocol.Store(r.Proto) }))
	_, _ = cluster.Core().Secrets("apps").Get(t.Context(), "pull", metav1.GetOptions{})

	if got := protocol.Load(); got != "HTTP/1.1" {
		t.Errorf("it was asked by %v", got)
	}
}

// identifyFinally calls Identify until the cluster has answered.
func identifyFinally(t *testing.T, cluster *Cluster) (Identity, error) {
	t.Helper()

	for {
		found, err := cluster.Identify(t.Context())
		if !errors.Is(err, ErrProbing) {
			return found, err
		}
	}
}

func respond(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body)) // the client sees a short answer
}

func TestIdentifyByKubeSystem(t *testing.T) {
	var asked atomic.Int32

	clusters := NewClusters(nil, loopback())
	cluster := get(t, clusters, serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)

		if r.Header.Get("Authorization") != "Bearer s3cret-token" {
			t.Errorf("the request carries no token")
		}

		if r.URL.Path == "/version" {
			respond(w, http.StatusOK, `{"gitVersion":"v1.37.1"}`)
		} else {
			respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
		}
	}))

	for range 3 {
		found, err := identifyFinally(t, cluster)
		if err != nil || found != (Identity{SourceKubeSystem, "u-1"}) {
			t.Fatalf("got %v, %v", found, err)
		}
	}

	if asked.Load() != 2 {
		t.Errorf("%d requests, want 2: the answer counts for a while", asked.Load())
	}

	cluster.Invalidate()

	if _, err := identifyFinally(t, cluster); err != nil || asked.Load() != 4 {
		t.Errorf("after a doubt: %d requests, %v", asked.Load(), err)
	}
}

func TestIdentifyErrors(t *testing.T) {
	status := func(code int, reason string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
	}

	for _, test := range []struct {
		name    string
		version int
		system  int
		reason  string // of the error; empty if there is none
		source  Source
	}{
		{"not allowed to read kube-system", 200, 403, "", SourceNone},
		{"no kube-system", 200, 404, "", SourceNone},
		{"token refused", 401, 401, v1alpha1.ReasonUnauthenticated, ""},
		{"version for anybody, token refused", 200, 401, v1alpha1.ReasonUnauthenticated, ""},
		{"made again in Omni", 403, 403, v1alpha1.ReasonForbidden, ""},
		{"no healthy API", 502, 502, v1alpha1.ReasonClusterUnreachable, ""},
		{"gone or starting", 500, 500, v1alpha1.ReasonClusterUnreachable, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, r *http.Request) {
				code := test.system
				if r.URL.Path == "/version" {
					code = test.version
				}

				respond(w, code, status(code, strings.ReplaceAll(http.StatusText(code), " ", "")))
			}))

			found, err := identifyFinally(t, cluster)
			if test.reason == "" {
				if err != nil || found.Source != test.source {
					t.Fatalf("got %v, %v", found, err)
				}

				return
			}

			if Reason(err) != test.reason || cluster.Message(err) == "" || strings.Contains(cluster.Message(err), "s3cret") {
				t.Errorf("reason %s, want %s: %s", Reason(err), test.reason, cluster.Message(err))
			}
		})
	}
}

// TestAGatewayWithoutRoute: an answer 404 that no Kubernetes gives does not tell which cluster it is, and that it has no namespace
// kube-system neither.
func TestAGatewayWithoutRoute(t *testing.T) {
	for name, routeless := range map[string]string{"for nothing": "/", "but for the version": "/api/v1/namespaces/kube-system"} {
		for kind, answer := range map[string]http.HandlerFunc{
			"a text": http.NotFound, "nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, r *http.Request) {
					if strings.HasPrefix(r.URL.Path, routeless) {
						answer(w, r)

						return
					}

					respond(w, http.StatusOK, `{"gitVersion":"v1.37.1"}`)
				}))

				if found, err := identifyFinally(t, cluster); Reason(err) != v1alpha1.ReasonClusterUnreachable || !strings.Contains(cluster.Message(err), "cannot be reached") {
					t.Errorf("got %v, %v", found, err)
				}
			})
		}
	}
}

// TestDeadCluster uses a server that accepts connections and never answers.
func TestDeadCluster(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	cluster := get(t, NewClusters(nil, loopback()), kubeconfig("server: 'https://"+listener.Addr().String()+"'", "token: t"))

	for range 2 {
		if _, err := cluster.Identify(t.Context()); !errors.Is(err, ErrProbing) {
			t.Errorf("got %v, want ErrProbing", err)
		}
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := cluster.Identify(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the caller's context", err)
	}
}

// TestFailedClusterFreesTheWorker uses a server that never answers and failed before: its failure stands, and nobody
// waits for as long as for an unknown cluster.
func TestFailedClusterFreesTheWorker(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	cluster := get(t, NewClusters(nil, loopback()), kubeconfig("server: 'https://"+listener.Addr().String()+"'", "token: t"))
	failure := errors.New("it failed")
	cluster.err, cluster.probed, cluster.probeWait = failure, time.Now().Add(-badFor), time.Hour

	if _, err := cluster.Identify(t.Context()); !errors.Is(err, failure) {
		t.Errorf("got %v, want the failure that is known", err)
	}
}

// TestFailureIsRemembered identifies a closed port twice: the second failure comes from memory.
func TestFailureIsRemembered(t *testing.T) {
	now := time.Now()
	clusters := NewClusters(func() time.Time { return now }, loopback())
	cluster := get(t, clusters, kubeconfig("server: 'https://127.0.0.1:1'", "token: t"))

	_, err := identifyFinally(t, cluster)
	if Reason(err) != v1alpha1.ReasonClusterUnreachable || !strings.Contains(cluster.Message(err), "cannot be reached") {
		t.Fatalf("got %v", err)
	}

	if ended, _, _, err := cluster.ask(); ended != nil || err == nil {
		t.Error("the failure was not remembered")
	}

	now = now.Add(badFor)

	if ended, _, _, _ := cluster.ask(); ended == nil {
		t.Error("the failure is remembered for ever")
	}

	if err := cluster.meanwhile(); errors.Is(err, ErrProbing) {
		t.Error("the old failure does not stand while the cluster is asked again")
	}
}

func TestRedirectKeepsTheToken(t *testing.T) {
	var leaked atomic.Bool

	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
	t.Cleanup(other.Close)

	cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/version", http.StatusTemporaryRedirect)
	}))

	_, err := identifyFinally(t, cluster)
	if err == nil || !strings.Contains(err.Error(), "redirects to another host") || leaked.Load() {
		t.Errorf("got %v, the other host was asked: %v", err, leaked.Load())
	}
}

func TestEndlessAnswer(t *testing.T) {
	cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))

	_, err := cluster.Core().Secrets("x").List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), "32 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestClustersKeepOnePerContent(t *testing.T) {
	clusters := NewClusters(nil, loopback())
	one, other := kubeconfig("server: 'https://one'", "token: t"), kubeconfig("server: 'https://other'", "token: t")

	first := get(t, clusters, one)
	if get(t, clusters, one) != first {
		t.Error("the same content gave another Cluster")
	}

	if get(t, clusters, other) == first {
		t.Error("other content gave the same Cluster")
	}

	clusters.Forget(key().NamespacedName)

	if len(clusters.entries) != 0 {
		t.Error("a Secret that is gone is still known")
	}
}

func TestConfigHoldsNoCredentials(t *testing.T) {
	cluster := get(t, NewClusters(nil, loopback()), kubeconfig("server: 'https://one'", "token: s3cret-token"))
	if text := fmt.Sprintf("%#v %v", cluster.RESTConfig(), cluster.RESTConfig()); strings.Contains(text, "s3cret") {
		t.Error("the configuration shows the token")
	}
}
