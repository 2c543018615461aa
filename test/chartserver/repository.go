package chartserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Repository is a running HTTP chart repository. Its methods may be called
// while it serves. Paths are those below its URL.
type Repository struct {
	server *httptest.Server
	// base is the path of the URL. No other repository of this process has it: a client that keeps what it fetched, by
	// URL, must not take this one for an earlier one that had the same port.
	base string

	mu       sync.Mutex
	files    map[string][]byte // by path
	order    []entry
	handlers map[string]http.HandlerFunc
	username string
	password string
	digests  bool
	requests []string
	seen     []http.Header
}

// started counts the repositories of this process.
var started atomic.Int64

type entry struct{ name, version, url, digest string }

// StartRepository starts an empty repository on loopback, without TLS.
func StartRepository() *Repository { return start((*httptest.Server).Start) }

// StartTLSRepository starts an empty repository on loopback, with TLS.
func StartTLSRepository() *Repository { return start((*httptest.Server).StartTLS) }

func start(run func(*httptest.Server)) *Repository {
	r := &Repository{
		base:  fmt.Sprintf("/%d", started.Add(1)),
		files: map[string][]byte{}, handlers: map[string]http.HandlerFunc{}, digests: true,
	}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.server.EnableHTTP2 = true
	run(r.server)

	return r
}

// Close stops the server.
func (r *Repository) Close() {
	// Else a client whose connection is closed comes back before the end.
	_ = r.server.Listener.Close()
	r.server.CloseClientConnections()
	r.server.Close()
}

// URL is the repository's URL.
func (r *Repository) URL() string { return r.server.URL + r.base }

// Host is host:port of the URL, for tests that take the server for a registry.
func (r *Repository) Host() string { return r.server.Listener.Addr().String() }

// CA is the PEM certificate that signs the server's; only with TLS.
func (r *Repository) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
}

// Add publishes a chart and returns the digest of its archive.
func (r *Repository) Add(chart Chart) string {
	data := chart.Pack()
	name := fmt.Sprintf("%s-%s.tgz", chart.Name, chart.Version)

	r.AddFile(name, data)
	r.AddEntry(chart.Name, chart.Version, name, hexDigest(data))

	return Digest(data)
}

// AddFile serves data under a path.
func (r *Repository) AddFile(path string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.files["/"+path] = data
}

// AddEntry adds a version to the index; url may be relative. It replaces an
// entry of the same name and version.
func (r *Repository) AddEntry(name, version, url, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.order = slices.DeleteFunc(r.order, func(e entry) bool { return e.name == name && e.version == version })
	r.order = append(r.order, entry{name, version, url, digest})
}

// Handle answers a path with a function instead, such as a fault.
func (r *Repository) Handle(path string, handler http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.handlers[path] = handler
}

// Protect makes the repository want credentials.
func (r *Repository) Protect(username, password string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.username, r.password = username, password
}

// WithoutDigests leaves the digests out of the index.
func (r *Repository) WithoutDigests() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.digests = false
}

// Requests returns "METHOD path status" of every request so far, in order.
func (r *Repository) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.requests)
}

// Downloads counts the successful requests for archives.
func (r *Repository) Downloads() int {
	count := 0

	for _, request := range r.Requests() {
		if strings.HasSuffix(request, ".tgz 200") {
			count++
		}
	}

	return count
}

// Headers returns the headers of every request so far, in order.
func (r *Repository) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.seen)
}

func (r *Repository) serve(w http.ResponseWriter, request *http.Request) {
	recorder := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	request.URL.Path = strings.TrimPrefix(request.URL.Path, r.base)

	r.mu.Lock()
	r.seen = append(r.seen, request.Header.Clone())
	handler := r.handlers[request.URL.Path]
	r.mu.Unlock()

	if handler != nil {
		handler(recorder, request)
	} else {
		r.answer(recorder, request)
	}

	r.mu.Lock()
	r.requests = append(r.requests, fmt.Sprintf("%s %s %d", request.Method, request.URL.Path, recorder.status))
	r.mu.Unlock()
}

func (r *Repository) answer(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if username, password, _ := request.BasicAuth(); r.username != "" && (username != r.username || password != r.password) {
		w.WriteHeader(http.StatusUnauthorized)

		return
	}

	data, ok := r.files[request.URL.Path]
	if request.URL.Path == "/index.yaml" {
		data, ok = r.index(), true
	}

	if !ok {
		w.WriteHeader(http.StatusNotFound)

		return
	}

	etag := `"` + hexDigest(data) + `"`
	w.Header().Set("ETag", etag)

	if request.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)

		return
	}

	_, _ = w.Write(data)
}

// index writes the index as Helm does. Called with the lock held.
func (r *Repository) index() []byte {
	var text strings.Builder

	text.WriteString("apiVersion: v1\nentries:\n")

	names := []string{}
	for _, e := range r.order {
		if !slices.Contains(names, e.name) {
			names = append(names, e.name)
		}
	}

	for _, name := range names {
		fmt.Fprintf(&text, "  %s:\n", name)

		for _, e := range r.order {
			if e.name != name {
				continue
			}

			fmt.Fprintf(&text, "  - name: %s\n    version: %q\n    urls:\n    - %s\n", e.name, e.version, e.url)

			if r.digests && e.digest != "" {
				fmt.Fprintf(&text, "    digest: %q\n", e.digest)
			}
		}
	}

	return []byte(text.String())
}

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets handlers reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
