package clusteraccess

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// compressed answers with gzip, whether or not the request accepts it.
func compressed(t *testing.T, w http.ResponseWriter, text string) {
	t.Helper()

	var packed bytes.Buffer

	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Error(err)
	}

	if err := writer.Close(); err != nil {
		t.Error(err)
	}

	w.Header().Set("Content-Encoding", "gzip")
	respond(w, http.StatusOK, packed.String())
}

// bomb returns an object whose text is short but whose decoded form is large.
func bomb(values int) string {
	return `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u","managedFields":[` +
		strings.TrimSuffix(strings.Repeat("{},", values), ",") + `]}}`
}

// TestHostileProbe checks that a probe takes little memory, whatever the answer.
func TestHostileProbe(t *testing.T) {
	const values = 1_000_000 // of 96 bytes and more when they are decoded

	text := bomb(values)

	for name, test := range map[string]struct {
		version func(http.ResponseWriter)
		system  func(http.ResponseWriter)
		says    string
	}{
		"compressed version":   {version: func(w http.ResponseWriter) { compressed(t, w, text) }, says: "compressed"},
		"compressed namespace": {system: func(w http.ResponseWriter) { compressed(t, w, text) }, says: "compressed"},
		"long version":         {version: func(w http.ResponseWriter) { respond(w, http.StatusOK, text) }, says: "which no Kubernetes does"},
		"long namespace":       {system: func(w http.ResponseWriter) { respond(w, http.StatusOK, strings.Repeat(" ", len(text))) }, says: "more than 512 KiB"},
		"many values":          {system: func(w http.ResponseWriter) { respond(w, http.StatusOK, bomb(50_000)) }, says: "of memory"},
		"another form": {system: func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			_, _ = w.Write(bytes.Repeat([]byte("\x0a\x00"), values))
		}, says: "protobuf"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Accept-Encoding") != "identity":
					t.Errorf("%s asks for %q", r.URL.Path, r.Header.Get("Accept-Encoding"))
				case r.URL.Path == "/version" && test.version != nil:
					test.version(w)
				case r.URL.Path == "/version":
					respond(w, http.StatusOK, `{}`)
				default:
					test.system(w)
				}
			}))

			var err error

			// The measurement includes the server's own text, several times when it is compressed.
			foreigntest.WantAllocated(t, 24<<20, func() { _, err = identifyFinally(t, cluster) })

			if err == nil || !strings.Contains(cluster.Message(err), test.says) || strings.Contains(cluster.Message(err), "retry") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHostileAnswers checks that no client decodes an answer that would become large.
func TestHostileAnswers(t *testing.T) {
	list := func(items string) string {
		return `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[` + items + `]}`
	}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

	for name, test := range map[string]struct {
		text string
		ask  func(*testing.T, *Cluster) error
	}{
		"object": {bomb(2_000_000), func(t *testing.T, c *Cluster) error {
			_, err := c.Core().Secrets("x").Get(t.Context(), "y", metav1.GetOptions{})

			return err
		}},
		"written object": {bomb(2_000_000), func(t *testing.T, c *Cluster) error {
			return c.Core().Secrets("x").Delete(t.Context(), "y", metav1.DeleteOptions{})
		}},
		"list": {list(strings.TrimSuffix(strings.Repeat("{},", 500_000), ",")), func(t *testing.T, c *Cluster) error {
			_, err := c.Core().Secrets("x").List(t.Context(), metav1.ListOptions{})

			return err
		}},
		"list of metadata": {list(strings.TrimSuffix(strings.Repeat("null,", 500_000), ",")), func(t *testing.T, c *Cluster) error {
			client, err := metadata.NewForConfig(c.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}

			_, err = client.Resource(secrets).Namespace("x").List(t.Context(), metav1.ListOptions{})

			return err
		}},
		"list of anything": {list(strings.TrimSuffix(strings.Repeat("{},", 500_000), ",")), func(t *testing.T, c *Cluster) error {
			client, err := dynamic.NewForConfig(c.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}

			_, err = client.Resource(secrets).Namespace("x").List(t.Context(), metav1.ListOptions{})

			return err
		}},
		"discovery": {`{"kind":"APIResourceList","groupVersion":"v1","resources":[` + strings.TrimSuffix(strings.Repeat("{},", 500_000), ",") + `]}`, func(t *testing.T, c *Cluster) error {
			client, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}

			_, err = client.ServerResourcesForGroupVersion("v1")

			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var packed bytes.Buffer

			writer := gzip.NewWriter(&packed)
			_, _ = writer.Write([]byte(test.text))
			_ = writer.Close()

			cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				respond(w, http.StatusOK, packed.String())
			}))

			var err error

			foreigntest.WantAllocated(t, 48<<20, func() { err = test.ask(t, cluster) })

			if err == nil || !strings.Contains(cluster.Message(err), "of memory, which is refused") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSwitchedProtocols checks that a server which switches to another protocol bounds nothing away: neither memory nor time.
func TestSwitchedProtocols(t *testing.T) {
	for name, endless := range map[string]bool{"endless": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, _ *http.Request) { foreigntest.SwitchProtocols(w, endless) }))

			ctx := await.Context(t)

			for what, ask := range map[string]func() error{
				"probe": func() error { _, err := identifyFinally(t, cluster); return err },
				"get":   func() error { _, err := cluster.Core().Secrets("x").Get(ctx, "a", metav1.GetOptions{}); return err },
				"watch": func() error { _, err := cluster.Core().Secrets("x").Watch(ctx, metav1.ListOptions{}); return err },
				"write": func() error { return cluster.Core().Secrets("x").Delete(ctx, "a", metav1.DeleteOptions{}) },
			} {
				var err error

				foreigntest.WantPeak(t, 32<<20, func() { err = ask() })

				if err == nil || !strings.Contains(err.Error(), "another protocol") || ctx.Err() != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestHostileWatch checks that an endless event ends the watch, and that ordinary events do not.
func TestHostileWatch(t *testing.T) {
	event := `{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","uid":"u"},"data":{"a":"` + strings.Repeat("eHh4", 5000) + `"}}}` + "\n"

	cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		for range 1000 { // 20 MB in all
			_, _ = w.Write([]byte(event))
		}

		_, _ = w.Write([]byte(`{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"managedFields":[`))

		chunk := bytes.Repeat([]byte("{},"), 10_000)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))

	watch, err := cluster.Core().Secrets("x").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	defer watch.Stop()

	seen := 0

	foreigntest.WantAllocated(t, 512<<20, func() {
		for range watch.ResultChan() {
			seen++
		}
	})

	if seen < 1000 {
		t.Errorf("%d events, want 1000", seen)
	}
}

func TestLimitsOf(t *testing.T) {
	for name, test := range map[string]struct {
		method, url string
		want        answer.Limits
	}{
		"list":                        {"GET", "/api/v1/namespaces/x/secrets", listLimits},
		"list of all":                 {"GET", "/api/v1/secrets?limit=500", listLimits},
		"object":                      {"GET", "/api/v1/namespaces/x/secrets/y", objectLimits},
		"object behind a gateway":     {"GET", "/k8s/clusters/c/api/v1/namespaces/x/secrets/y", objectLimits},
		"list behind a gateway":       {"GET", "/k8s/clusters/c/apis/apps/v1/namespaces/x/deployments", listLimits},
		"object of a group":           {"GET", "/apis/apps/v1/namespaces/x/deployments/y", objectLimits},
		"subresource":                 {"GET", "/apis/apps/v1/namespaces/x/deployments/y/scale", objectLimits},
		"object without a namespace":  {"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/y", objectLimits},
		"list without a namespace":    {"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", listLimits},
		"namespace":                   {"GET", "/api/v1/namespaces/x", objectLimits},
		"namespaces":                  {"GET", "/api/v1/namespaces", listLimits},
		"created object":              {"POST", "/api/v1/namespaces/x/secrets", objectLimits},
		"resources of a version":      {"GET", "/api/v1", listLimits},
		"groups":                      {"GET", "/apis", listLimits},
		"resources of a group":        {"GET", "/apis/apps/v1", listLimits},
		"what the API says of itself": {"GET", "/openapi/v2", listLimits},
		"watch":                       {"GET", "/api/v1/namespaces/x/secrets?watch=true", eventLimits},
		"log":                         {"GET", "/api/v1/namespaces/x/pods/y/log?container=z", logLimits},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://h"+test.url, nil)
			if err != nil {
				t.Fatal(err)
			}

			if got := limitsOf(request); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestClientsAskForJSON checks that clients that prefer protobuf get JSON.
func TestClientsAskForJSON(t *testing.T) {
	for accepted, want := range map[string]string{
		"application/json": "application/json",
		"":                 "",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf":                                                                                           "application/json",
		"application/cbor,application/json": "application/json",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cluster", nil)
		if err != nil {
			t.Fatal(err)
		}

		request.Header.Set("Accept", accepted)

		if got := askingForJSON(request).Header.Get("Accept"); got != want || request.Header.Get("Accept") != accepted {
			t.Errorf("%q becomes %q, want %q", accepted, got, want)
		}
	}
}
