package omnisim

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// kubernetesProxy is Omni's Kubernetes proxy: one URL for all clusters. The bearer token holds the cluster and the
// user. Its answers to requests that it cannot forward were measured at the real server.
type kubernetesProxy struct {
	sim      *Server
	backends backends

	mu      sync.Mutex
	address string // kept while the server is down, so that kubeconfigs stay valid
	serving *http.Server
	answers map[int]int
}

func newKubernetesProxy(sim *Server) *kubernetesProxy {
	return &kubernetesProxy{sim: sim, backends: backends{of: map[string]*backend{}}, answers: map[int]int{}}
}

// KubernetesProxyURL is the server in every kubeconfig: https://127.0.0.1:port with a certificate of the simulator's
// authority (CAPEM), or the URL of Options.
func (s *Server) KubernetesProxyURL() string {
	if s.options.KubernetesProxyURL != "" {
		return s.options.KubernetesProxyURL
	}

	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()

	return "https://" + s.proxy.address
}

// KubernetesProxyAnswers counts the answers of the Kubernetes proxy by HTTP status, including forwarded ones.
func (s *Server) KubernetesProxyAnswers() map[int]int {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()

	return maps.Clone(s.proxy.answers)
}

// serve listens, at the previous address if there was one, and answers in the background.
func (p *kubernetesProxy) serve() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	address := p.address
	if address == "" {
		address = "127.0.0.1:0"
	}

	listener, err := listen(address)
	if err != nil {
		return fmt.Errorf("listen for the Kubernetes proxy on %s: %w", address, err)
	}

	p.address = listener.Addr().String()
	p.serving = &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // mostly clients that do not trust the certificate
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{p.sim.identity.server}, MinVersion: tls.VersionTLS12},
	}

	go func(serving *http.Server) {
		// ServeTLS ends when the server is closed; other errors have no receiver.
		_ = serving.ServeTLS(listener, "", "")
	}(p.serving)

	return nil
}

// shut closes every connection, including open watches.
func (p *kubernetesProxy) shut() {
	p.mu.Lock()
	serving := p.serving
	p.serving = nil
	p.mu.Unlock()

	if serving != nil {
		_ = serving.Close()
	}

	p.backends.closeAll()
}

// proxyRefusal is an answer of the proxy itself. Its text is empty where the real server sends only the status.
type proxyRefusal struct {
	code int
	text string
}

// proxyError is the real server's text when no Kubernetes API can be reached.
const proxyError = "proxy error"

// ServeHTTP forwards a request to the workload cluster in its token.
func (p *kubernetesProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	recorder := &answerRecorder{ResponseWriter: w, proxy: p}

	token, refused := p.authenticate(r)
	if refused != nil {
		recorder.WriteHeader(refused.code)
		_, _ = io.WriteString(recorder, refused.text) // the client may be gone

		return
	}

	target := p.backends.get(token.Cluster)
	if target == nil {
		http.Error(recorder, proxyError, http.StatusBadGateway)

		return
	}

	forward := &httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(target.url)
			speakFor(out.Out.Header, token)
		},
		Transport:     target,
		FlushInterval: -1, // events of a watch must not wait for more
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, proxyError, http.StatusBadGateway)
		},
	}

	forward.ServeHTTP(recorder, r)
}

// authenticate returns the user and the cluster of a request, and checks that the cluster exists.
func (p *kubernetesProxy) authenticate(r *http.Request) (*tokenClaims, *proxyRefusal) {
	raw, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		return nil, &proxyRefusal{http.StatusUnauthorized, ""}
	}

	token, err := p.sim.signer.verify(r.Context(), raw)
	if err != nil {
		return nil, &proxyRefusal{http.StatusUnauthorized, err.Error()}
	}

	uuid, err := find[*omni.ClusterUUID](r.Context(), p.sim.resources, omni.NewClusterUUID(token.Cluster).Metadata())
	if err != nil || uuid == nil {
		return nil, &proxyRefusal{http.StatusInternalServerError, ""}
	}

	if uuid.TypedSpec().Value.GetUuid() != token.ClusterUUID {
		return nil, &proxyRefusal{http.StatusForbidden, ""}
	}

	return token, nil
}

// speakFor replaces a client's identity headers by those of its token.
func speakFor(header http.Header, token *tokenClaims) {
	for name := range header {
		if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") || name == "Authorization" {
			header.Del(name)
		}
	}

	header.Set("X-Remote-User", token.Subject)

	for _, group := range token.Groups {
		header.Add("X-Remote-Group", group)
	}
}

// answerRecorder counts the status of one answer.
type answerRecorder struct {
	http.ResponseWriter
	proxy *kubernetesProxy
	once  sync.Once
}

// WriteHeader counts the first final status.
func (a *answerRecorder) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		a.count(code)
	}

	a.ResponseWriter.WriteHeader(code)
}

// Write counts an answer without an explicit status, which is 200.
func (a *answerRecorder) Write(data []byte) (int, error) {
	a.count(http.StatusOK)

	return a.ResponseWriter.Write(data)
}

// Unwrap gives the reverse proxy the inner writer, to flush and to hijack the connection.
func (a *answerRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answerRecorder) count(code int) {
	a.once.Do(func() {
		a.proxy.mu.Lock()
		defer a.proxy.mu.Unlock()

		a.proxy.answers[code]++
	})
}
