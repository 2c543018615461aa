package charts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
	// headerTimeout bounds the time to the first byte of an answer.
	headerTimeout = 30 * time.Second
	// maxHeaderBytes bounds the header of an answer.
	maxHeaderBytes = 256 << 10
	// maxErrorBytes is what is read of an answer that is only thrown away.
	maxErrorBytes = 64 << 10
	// userAgent is how the controller names itself to repositories.
	userAgent = "omni-controller"
)

// session is what one look at one source uses: its own connections, so that
// nothing of one source is shared with another.
type session struct {
	client      *http.Client
	transport   *http.Transport
	credentials Credentials
	host        string // the only host[:port] that gets the credentials
	token       string // of a registry; empty before it asks for one
}

func (f *Fetcher) newSession(source *Source) (*session, error) {
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

	transport := &http.Transport{
		// Proxy is not set: a variable of the environment must not decide where credentials go.
		DialContext:            f.guard.dialer().DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
		// A chart that a server labels as gzip-encoded must arrive as it is, or no digest fits.
		DisableCompression: true,
	}

	return &session{
		client:      &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		transport:   transport,
		credentials: source.Credentials,
		host:        source.Host(),
	}, nil
}

func (s *session) close() { s.transport.CloseIdleConnections() }

// checkRedirect follows few redirects, never from encrypted to plain, and drops
// the credentials as soon as a redirect has left the first host.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fail(Unreachable, "%s redirects more than %d times", place(via[0].URL), maxRedirects)
	}

	for _, earlier := range via {
		if earlier.URL.Scheme == "https" && request.URL.Scheme != "https" {
			return fail(Invalid, "%s redirects to the unencrypted %s", place(via[0].URL), place(request.URL))
		}

		if !sameOrigin(earlier.URL, request.URL) {
			request.Header.Del("Authorization")
		}
	}

	if request.URL.User != nil || request.URL.Scheme != "https" && request.URL.Scheme != "http" {
		return fail(Invalid, "%s redirects to something that is no plain http or https URL", place(via[0].URL))
	}

	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// place is a URL as it may be shown: without query, which can hold a signature.
func place(location *url.URL) string {
	return (&url.URL{Scheme: location.Scheme, Host: location.Host, Path: location.Path}).String()
}

// do sends a request. Credentials go along only to the repository's own host.
// The caller closes the body.
func (s *session) do(ctx context.Context, method, location string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, location, nil)
	if err != nil {
		return nil, fail(Invalid, "the repository names a URL that cannot be used")
	}

	if request.URL.User != nil {
		return nil, fail(Invalid, "%s: a URL with user info is not used: credentials belong in a Secret", place(request.URL))
	}

	for key, values := range header {
		request.Header[key] = values
	}

	request.Header.Set("User-Agent", userAgent)

	if strings.EqualFold(request.URL.Host, s.host) {
		switch {
		case s.token != "":
			request.Header.Set("Authorization", s.token)
		case !s.credentials.empty():
			request.SetBasicAuth(s.credentials.Username, s.credentials.Password)
		}
	}

	response, err := s.client.Do(request)
	if err != nil {
		return nil, explain(err, place(request.URL))
	}

	return response, nil
}

// read returns the body of an answer, at most limit bytes of it.
func read(response *http.Response, limit int64, what string) ([]byte, error) {
	at := place(response.Request.URL)

	if response.ContentLength > limit {
		return nil, tooLarge(what, at, limit)
	}

	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, explain(fmt.Errorf("read %s: %w", what, err), at)
	}

	if int64(len(data)) > limit {
		return nil, tooLarge(what, at, limit)
	}

	return data, nil
}

func tooLarge(what, at string, limit int64) error {
	return fail(TooLarge, "%s: the %s is larger than the limit of %d MiB", at, what, limit>>20)
}

// discard ends an answer that is not read.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxErrorBytes)
	_ = response.Body.Close()
}

// refused explains an answer that is not the one that was asked for.
func (s *session) refused(response *http.Response, what string) error {
	at := place(response.Request.URL)

	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if s.credentials.empty() {
			return fail(Unauthorized, "%s wants credentials (HTTP %d): set authSecretRef", at, code)
		}

		return fail(Unauthorized, "%s does not accept the credentials of authSecretRef (HTTP %d)", at, code)
	case code == http.StatusNotFound || code == http.StatusGone:
		return fail(NotFound, "%s: there is no such %s (HTTP %d)", at, what, code)
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return fail(Unreachable, "%s answers HTTP %d", at, code)
	default:
		return fail(Invalid, "%s answers HTTP %d instead of the %s", at, code, what)
	}
}
