package helm

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// workload is a workload cluster that has ConfigMaps, and Secrets of which it knows those that were written.
type workload struct {
	config *rest.Config
	// configMaps answers what is asked of ConfigMaps; nil finds none.
	configMaps http.HandlerFunc

	mu      sync.Mutex
	secrets map[string]*corev1.Secret
}

func newWorkload(t *testing.T) *workload {
	t.Helper()

	w := &workload{secrets: map[string]*corev1.Secret{}}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)

	w.config = &rest.Config{Host: server.URL}

	return w
}

// ServeHTTP implements http.Handler.
func (w *workload) ServeHTTP(to http.ResponseWriter, request *http.Request) {
	to.Header().Set("Content-Type", "application/json")

	switch at := request.URL.Path; {
	case at == "/version":
		_, _ = to.Write([]byte(`{"major":"1","minor":"34","gitVersion":"v1.34.0"}`))
	case at == "/api":
		_, _ = to.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
	case at == "/apis":
		_, _ = to.Write([]byte(`{"kind":"APIGroupList","groups":[]}`))
	case at == "/api/v1":
		_, _ = to.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
			`{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","create","patch","delete"]}]}`))
	case strings.Contains(at, "/secrets"):
		w.serveSecret(to, request)
	case strings.Contains(at, "/configmaps") && w.configMaps != nil:
		w.configMaps(to, request)
	default:
		answer(to, apierrors.NewNotFound(schema.GroupResource{}, at))
	}
}

func (w *workload) serveSecret(to http.ResponseWriter, request *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()

	name := path.Base(request.URL.Path)

	if request.Method != http.MethodGet {
		written := &corev1.Secret{}

		text, err := io.ReadAll(request.Body)
		if _, _, decoded := scheme.Codecs.UniversalDeserializer().Decode(text, nil, written); err != nil || decoded != nil {
			panic(errors.Join(err, decoded))
		}

		written.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		name, w.secrets[written.Name] = written.Name, written
	}

	found := w.secrets[name]
	if found == nil {
		answer(to, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name))

		return
	}

	_ = json.NewEncoder(to).Encode(found)
}

// answer refuses a request as an API server does it.
func answer(to http.ResponseWriter, refused *apierrors.StatusError) {
	refused.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}

	to.WriteHeader(int(refused.ErrStatus.Code))
	_ = json.NewEncoder(to).Encode(&refused.ErrStatus)
}

// add writes Helm's record of a revision.
func (w *workload) add(t *testing.T, record *releasev1.Release) {
	t.Helper()

	if err := w.records(t).Create(key(record.Name, record.Version), record); err != nil {
		t.Fatal(err)
	}
}

// read reads Helm's record of a revision.
func (w *workload) read(t *testing.T, version int) *releasev1.Release {
	t.Helper()

	found, err := w.records(t).Get(key("demo", version))
	if err != nil {
		t.Fatal(err)
	}

	return found.(*releasev1.Release)
}

func (w *workload) records(t *testing.T) driver.Driver {
	t.Helper()

	client, err := typedcorev1.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}

	return driver.NewSecrets(client.Secrets("apps"))
}

// applied is the record of a revision that the server has applied.
func applied(version int, status common.Status, manifest string, config map[string]any) *releasev1.Release {
	return &releasev1.Release{
		Name: "demo", Namespace: "apps", Version: version, Manifest: manifest, Config: config,
		Info: &releasev1.Info{Status: status}, ApplyMethod: string(releasev1.ApplyMethodServerSideApply),
	}
}

// everyKind are kinds whose fields the server validates.
type everyKind struct{}

// Has implements kubeclient.Kinds.
func (everyKind) Has(schema.GroupVersionKind) bool { return true }

// Add implements kubeclient.Kinds.
func (everyKind) Add(schema.GroupVersionKind) {}
