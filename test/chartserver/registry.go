package chartserver

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Media types of charts in a registry.
const (
	manifestType   = "application/vnd.oci.image.manifest.v1+json"
	configType     = "application/vnd.cncf.helm.config.v1+json"
	chartType      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	provenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// Registry is a running OCI registry with TLS. It asks for a bearer token if it
// is protected, or for the credentials themselves.
type Registry struct {
	server  *httptest.Server
	backend http.Handler

	mu       sync.Mutex
	username string
	password string
	realm    string
	basic    bool
	both     bool
	strict   bool
	asked    bool // for credentials, at least once
	requests []string
}

// token is what the registry's token service gives to those who may have it.
const token = "registry-token"

// StartRegistry starts an empty registry on loopback.
func StartRegistry() *Registry {
	r := &Registry{backend: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	r.server = httptest.NewTLSServer(http.HandlerFunc(r.serve))
	r.realm = r.server.URL + "/token"

	return r
}

// Close stops the server.
func (r *Registry) Close() {
	// Else a client whose connection is closed comes back before the end.
	_ = r.server.Listener.Close()
	r.server.CloseClientConnections()
	r.server.Close()
}

// URL is the oci:// URL of a chart in the registry.
func (r *Registry) URL(repository string) string {
	return "oci://" + strings.TrimPrefix(r.server.URL, "https://") + "/" + repository
}

// CA is the PEM certificate that signs the server's.
func (r *Registry) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
}

// Protect makes the registry want a token, and its token service credentials.
func (r *Registry) Protect(username, password string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.username, r.password = username, password
}

// WantBasic makes a protected registry want the credentials themselves, and no token.
func (r *Registry) WantBasic() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.basic = true
}

// TakeBoth makes a protected registry take the credentials as well, and ask for a token all the same.
func (r *Registry) TakeBoth() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.both = true
}

// RefuseUnasked makes the registry answer 400 to credentials that it did not ask for, as some do.
func (r *Registry) RefuseUnasked() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.strict = true
}

// SetRealm names another token service.
func (r *Registry) SetRealm(location string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.realm = location
}

// Requests returns "METHOD path" of every request so far, in order.
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.requests)
}

// Push publishes a chart under repository:version, with a provenance file if
// one is given, and returns the digests of its archive and of its manifest. It
// panics if the registry, which is in this process, fails.
func (r *Registry) Push(repository string, chart Chart, provenance []byte) (archive, manifest string) {
	data := chart.Pack()
	layers := []descriptor{r.blob(repository, chartType, data)}

	if provenance != nil {
		layers = append(layers, r.blob(repository, provenanceType, provenance))
	}

	document, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": r.blob(repository, configType, []byte(fmt.Sprintf(`{"name":%q,"version":%q}`, chart.Name, chart.Version))),
		"layers": layers, "annotations": map[string]string{"org.opencontainers.image.version": chart.Version},
	})
	must(err)

	tag := strings.ReplaceAll(chart.Version, "+", "_")
	r.put(fmt.Sprintf("/v2/%s/manifests/%s", repository, tag), manifestType, document)

	return Digest(data), Digest(document)
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

func (r *Registry) blob(repository, mediaType string, data []byte) descriptor {
	digest := Digest(data)
	path := fmt.Sprintf("/v2/%s/blobs/uploads/", repository)
	recorder := r.send(http.MethodPost, path+"?digest="+url.QueryEscape(digest), mediaType, data)

	if recorder.Code != http.StatusCreated {
		panic(fmt.Sprintf("push a blob: HTTP %d", recorder.Code))
	}

	return descriptor{MediaType: mediaType, Digest: digest, Size: len(data)}
}

func (r *Registry) put(path, mediaType string, data []byte) {
	if recorder := r.send(http.MethodPut, path, mediaType, data); recorder.Code != http.StatusCreated {
		panic(fmt.Sprintf("push a manifest: HTTP %d %s", recorder.Code, recorder.Body))
	}
}

// send reaches the registry behind its own front: pushes need no token.
func (r *Registry) send(method, path, mediaType string, data []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, bytes.NewReader(data))
	request.Header.Set("Content-Type", mediaType)

	recorder := httptest.NewRecorder()
	r.backend.ServeHTTP(recorder, request)

	return recorder
}

func (r *Registry) serve(w http.ResponseWriter, request *http.Request) {
	if !r.refuses(w, request) {
		r.backend.ServeHTTP(w, request)
	}
}

// refuses counts a request, and answers it unless the backend is to do that.
func (r *Registry) refuses(w http.ResponseWriter, request *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.requests = append(r.requests, request.Method+" "+request.URL.Path)

	given, secret, sent := request.BasicAuth()
	known := given == r.username && secret == r.password

	switch {
	case request.URL.Path == "/token" && known:
		_, _ = fmt.Fprintf(w, `{"token":%q}`, token)
	case request.URL.Path == "/token":
		w.WriteHeader(http.StatusUnauthorized)
	case r.strict && sent && (!r.basic || !r.asked):
		w.WriteHeader(http.StatusBadRequest)
	case r.username != "" && !r.admits(request, known):
		r.asked = true
		w.Header().Set("WWW-Authenticate", r.challenge())
		w.WriteHeader(http.StatusUnauthorized)
	default:
		return false
	}

	return true
}

// admits is called with the lock held. Known says that the request has the credentials.
func (r *Registry) admits(request *http.Request, known bool) bool {
	if r.basic || r.both && known {
		return known
	}

	return request.Header.Get("Authorization") == "Bearer "+token
}

// challenge is called with the lock held.
func (r *Registry) challenge() string {
	if r.basic {
		return `Basic realm="registry"`
	}

	return fmt.Sprintf(`Bearer realm=%q,service="registry",scope="repository:x:pull"`, r.realm)
}
