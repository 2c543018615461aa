package omnisim

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// backendTimeout bounds the TLS handshake with a workload cluster.
const backendTimeout = 5 * time.Second

// Workload is the Kubernetes API of a simulated cluster: a real kube-apiserver that the caller has started. All fields
// are required.
type Workload struct {
	// URL is the URL of kube-apiserver, https://host:port.
	URL string
	// CA is the PEM of the authority that signed its serving certificate.
	CA []byte
	// ProxyCert and ProxyKey are the PEM of a client certificate from which that kube-apiserver accepts X-Remote-User and
	// X-Remote-Group (its --requestheader-client-ca-file).
	ProxyCert, ProxyKey []byte
}

// AttachWorkload connects the kubeconfigs of the cluster with this name to a Kubernetes API. The cluster need not exist
// yet; the attachment outlives it, so that a recreated cluster of the same name uses it, too. One Workload may serve
// several clusters. Another call replaces it.
func (s *Server) AttachWorkload(cluster string, workload Workload) error {
	made, err := newBackend(workload)
	if err != nil {
		return fmt.Errorf("attach a workload to cluster %q: %w", cluster, err)
	}

	s.proxy.backends.set(cluster, made)

	return nil
}

// DetachWorkload makes the cluster answer 502 again, as one without a healthy Kubernetes API.
func (s *Server) DetachWorkload(cluster string) { s.proxy.backends.set(cluster, nil) }

// backend is a workload cluster with the connections to it.
type backend struct {
	url     *url.URL
	plain   *http.Transport // HTTP/2
	upgrade *http.Transport // HTTP/1.1: exec, attach and port-forward hijack the connection
}

func newBackend(workload Workload) (*backend, error) {
	target, err := url.Parse(workload.URL)
	if err != nil || target.Scheme != "https" || target.Host == "" {
		return nil, fmt.Errorf("the URL %q is not https://host:port", workload.URL)
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(workload.CA) {
		return nil, errors.New("the CA holds no certificate")
	}

	pair, err := tls.X509KeyPair(workload.ProxyCert, workload.ProxyKey)
	if err != nil {
		return nil, fmt.Errorf("client certificate of the proxy: %w", err)
	}

	transport := func(protocols ...string) *http.Transport {
		return &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, NextProtos: protocols, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: backendTimeout,
			ForceAttemptHTTP2:   len(protocols) > 1,
			MaxIdleConnsPerHost: 8,
			DisableCompression:  true, // answers pass through as they are
		}
	}

	return &backend{url: target, plain: transport("h2", "http/1.1"), upgrade: transport("http/1.1")}, nil
}

func (b *backend) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Upgrade") != "" {
		return b.upgrade.RoundTrip(request)
	}

	return b.plain.RoundTrip(request)
}

func (b *backend) close() {
	b.plain.CloseIdleConnections()
	b.upgrade.CloseIdleConnections()
}

// backends are the attached workloads by the name of the cluster.
type backends struct {
	mu sync.Mutex
	of map[string]*backend
}

func (b *backends) get(cluster string) *backend {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.of[cluster]
}

// set replaces a backend; nil removes it.
func (b *backends) set(cluster string, made *backend) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if former := b.of[cluster]; former != nil {
		former.close()
	}

	if made == nil {
		delete(b.of, cluster)
	} else {
		b.of[cluster] = made
	}
}

func (b *backends) closeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, one := range b.of {
		one.close()
	}
}
