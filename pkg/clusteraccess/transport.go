package clusteraccess

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// The timeouts of a connection. The context bounds a request as a whole, because watches and waits have no fixed
// duration.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	headerTimeout    = 60 * time.Second // kube-apiserver itself gives up after 60 s
	idleTimeout      = 90 * time.Second
	idlePerHost      = 8
)

// The client-side rate limit of one cluster, in requests per second and in a burst. kubectl's own is 50 and 300;
// priority and fairness of the workload cluster is the real limit.
const (
	clientQPS   = 50
	clientBurst = 100
)

// maxHeader is how large the header of an answer may be, in bytes. Go's own limit is 10 MiB.
const maxHeader = 256 << 10

// retryAfter is the header of a refusal that says when to ask again, in seconds or as a date.
const retryAfter = "Retry-After"

// userAgent appears in the audit log of a workload cluster.
const userAgent = "omni-controller"

// newTransport returns a transport for one kubeconfig: client-go's shared cache of transports cannot be closed, and a
// replaced kubeconfig must not leave connections behind. It speaks HTTP/1.1: HTTP/2 has frames that are part of no answer, and no
// bound on answers would count them.
func newTransport(a *settings, guard dialguard.Guard) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: a.ca, CertData: a.certificate, KeyData: a.key, ServerName: a.serverName, NextProtos: []string{"http/1.1"},
	}})
	if err != nil {
		return nil, fmt.Errorf("%w: its certificates do not fit together", ErrInvalid)
	}

	way, err := a.route(http.ProxyFromEnvironment, guard)
	if err != nil {
		return nil, err
	}

	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:                  way.proxy,
		DialContext:            way.dialer.DialContext,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    idlePerHost,
	}), nil
}

// newConfig returns the client configuration for consumers; refused is called for every answer 401. The credentials are in its transport, not in its fields: it
// can be copied and printed.
func newConfig(a *settings, transport http.RoundTripper, secrets *redact.Secrets, refused func()) (*rest.Config, error) {
	server, err := url.Parse(a.server)
	if err != nil {
		return nil, fmt.Errorf("%w: cluster.server is no URL", ErrInvalid)
	}

	authenticated, err := rest.HTTPWrappersForConfig(&rest.Config{
		BearerToken: a.token, Username: a.username, Password: a.secret, UserAgent: userAgent,
	}, transport)
	if err != nil {
		return nil, fmt.Errorf("%w: its credentials contradict each other (a token and a user name)", ErrInvalid)
	}

	return &rest.Config{
		Host:      a.server,
		Transport: &sameHost{host: server.Host, secrets: secrets, next: authenticated, refused: refused},
		UserAgent: userAgent,
		QPS:       clientQPS,
		Burst:     clientBurst,
		// client-go would log a server's warnings as they are.
		WarningHandlerWithContext: rest.NoWarnings{},
	}, nil
}

// sameHost refuses requests to other hosts (client-go follows redirects and would send the credentials along), and
// answers that would take too much memory. It removes the credentials from error answers, and long waits before the next try.
type sameHost struct {
	host    string
	secrets *redact.Secrets
	next    http.RoundTripper
	refused func()
}

// RoundTrip implements http.RoundTripper.
func (s *sameHost) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != s.host || request.URL.Scheme != "https" {
		if request.Body != nil {
			_ = request.Body.Close() // RoundTrip must always close it
		}

		return nil, fmt.Errorf("the workload cluster redirects to another host (%s), which is refused", request.URL.Host)
	}

	response, err := s.next.RoundTrip(askingForJSON(request))
	if err != nil {
		return nil, err // the caller is net/http
	}

	if response.StatusCode == http.StatusUnauthorized {
		s.refused()
	}

	shortenRetryAfter(response)

	if err := scrubRefusal(response, s.secrets); err != nil {
		return nil, err
	}

	if err := s.bound(request, response); err != nil {
		return nil, err
	}

	return response, nil
}

// shortenRetryAfter makes a client that is refused ask again after a second, as kube-apiserver wants it, whatever the answer
// says. client-go waits for that up to ten times, and the wait ends with the context of its call only: that of Helm's calls
// has no end.
func shortenRetryAfter(response *http.Response) {
	if said := response.Header.Get(retryAfter); said != "" && said != "0" {
		response.Header.Set(retryAfter, "1")
	}
}

// WrappedRoundTripper returns the inner transport, for client-go.
func (s *sameHost) WrappedRoundTripper() http.RoundTripper { return s.next }
