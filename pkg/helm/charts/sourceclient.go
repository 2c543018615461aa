package charts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
)

const (
	// dialTimeout bounds one connection attempt, and one TLS handshake.
	dialTimeout = 10 * time.Second
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
	// headerTimeout bounds the time to the first byte of an answer.
	headerTimeout = 30 * time.Second
	// idleTimeout is how long a connection stays open that nobody uses.
	idleTimeout = 10 * time.Second
	// maxHeaderBytes bounds the header of an answer.
	maxHeaderBytes = 256 << 10
	// maxErrorBytes is what is read of an answer that is only thrown away.
	maxErrorBytes = 64 << 10
	// userAgent is how the controller names itself to repositories.
	userAgent = "omni-controller"
)

// sourceClient is what one look at one source uses: its own connections, so that
// nothing of one source is shared with another.
type sourceClient struct {
	client      *http.Client
	downloads   *downloads
	transport   *http.Transport
	credentials Credentials
	host        string // the only host[:port] that gets the credentials
	basic       bool   // whether it gets them unasked; a registry that has asked for them does
	token       string // of a registry; empty before it asks for one
}

func (f *Fetcher) newSourceClient(source *Source) (*sourceClient, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}

	if len(source.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}

		if !pool.AppendCertsFromPEM(source.CA) {
			return nil, fail(Invalid, "the Secret of caSecretRef holds no PEM certificate under ca.crt")
		}

		config.RootCAs = pool
	}

	// Not HTTP/2, which has frames that are part of no answer: no bound on answers would count them.
	transport := &http.Transport{
		// Proxy is not set: a variable of the environment must not decide where credentials go.
		DialContext:            f.options.Guard.Dialer(dialTimeout).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		// Somebody else's question may go on with this client when the look has ended, and its connections are closed.
		IdleConnTimeout: idleTimeout,
		// A chart that a server labels as gzip-encoded must arrive as it is, or no digest fits.
		DisableCompression: true,
	}

	return &sourceClient{
		client:      &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		downloads:   f.downloads,
		transport:   transport,
		credentials: source.Credentials,
		host:        source.Host(),
		basic:       !source.IsOCI(),
	}, nil
}

func (s *sourceClient) close() { s.transport.CloseIdleConnections() }

// checkRedirect follows few redirects, never from encrypted to plain, and drops
// the credentials as soon as a redirect has left the first host.
func checkRedirect(request *http.Request, via []*http.Request) error {
	// It would tell the next host the whole URL, with a query that may be a signature.
	request.Header.Del("Referer")

	if len(via) >= maxRedirects {
		return fail(Unreachable, "%s redirects more than %d times", shown(via[0].URL), maxRedirects)
	}

	for _, earlier := range via {
		if earlier.URL.Scheme == "https" && request.URL.Scheme != "https" {
			return fail(Invalid, "%s redirects to the unencrypted %s", shown(via[0].URL), shown(request.URL))
		}

		if !sameOrigin(earlier.URL, request.URL) {
			request.Header.Del("Authorization")
		}
	}

	if request.URL.User != nil || request.URL.Scheme != "https" && request.URL.Scheme != "http" {
		return fail(Invalid, "%s redirects to something that is no plain http or https URL", shown(via[0].URL))
	}

	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// shown is a URL as it may be shown: without query, which can hold a signature.
func shown(location *url.URL) string {
	return (&url.URL{Scheme: location.Scheme, Host: location.Host, Path: location.Path}).String()
}

// shownText is shown for a URL that was not parsed yet.
func shownText(location string) string {
	parsed, err := url.Parse(location)
	if err != nil {
		return "the chart's repository"
	}

	return shown(parsed)
}

// do sends a request. Credentials go along only to the repository's own host.
// The caller closes the body.
func (s *sourceClient) do(ctx context.Context, method, location string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, location, nil)
	if err != nil {
		return nil, fail(Invalid, "the repository names a URL that cannot be used")
	}

	if request.URL.User != nil {
		return nil, fail(Invalid, "%s: a URL with user info is not used: credentials belong in a Secret", shown(request.URL))
	}

	for key, values := range header {
		request.Header[key] = values
	}

	request.Header.Set("User-Agent", userAgent)

	if strings.EqualFold(request.URL.Host, s.host) {
		switch {
		case s.token != "":
			request.Header.Set("Authorization", s.token)
		case s.basic && !s.credentials.empty():
			request.SetBasicAuth(s.credentials.Username, s.credentials.Password)
		}
	}

	response, err := s.client.Do(request)
	if err != nil {
		return nil, explain(err, shown(request.URL))
	}

	if err := answer.CheckProtocol(response); err != nil {
		return nil, fail(Invalid, "%s: %v", shown(request.URL), err)
	}

	return response, nil
}
