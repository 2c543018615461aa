package charts

import (
	"bytes"
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
	// dialTimeout bounds one connection attempt, and one TLS handshake.
	dialTimeout = 10 * time.Second
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
	downloads   *downloads
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
		DialContext:            f.options.Guard.Dialer(dialTimeout).DialContext,
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
		downloads:   f.downloads,
		transport:   transport,
		credentials: source.Credentials,
		host:        source.Host(),
	}, nil
}

func (s *session) close() { s.transport.CloseIdleConnections() }

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
func (s *session) do(ctx context.Context, method, location string, header http.Header) (*http.Response, error) {
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
		case !s.credentials.empty():
			request.SetBasicAuth(s.credentials.Username, s.credentials.Password)
		}
	}

	response, err := s.client.Do(request)
	if err != nil {
		return nil, explain(err, shown(request.URL))
	}

	return response, nil
}

// read returns the body of an answer, at most limit bytes of it.
func (s *session) read(ctx context.Context, response *http.Response, limit int64, what string) ([]byte, error) {
	data, done, err := s.readLarge(ctx, response, limit, what)
	if err != nil {
		return nil, err
	}

	done()

	return data, nil
}

// readLarge returns the body of an answer, at most limit bytes of it. While it is
// large it has one of the slots for that; done gives it back when the data is
// not needed any more.
func (s *session) readLarge(ctx context.Context, response *http.Response, limit int64, what string) (data []byte, done func(), err error) {
	at := shown(response.Request.URL)

	if response.ContentLength > limit {
		return nil, nil, tooLarge(what, at, limit)
	}

	release := func() {}

	defer func() {
		if err != nil {
			release()
		}
	}()

	var buffer bytes.Buffer

	for _, step := range []int64{min(smallBytes, limit), limit} {
		// One byte more than may be there tells that there is more.
		if _, err := io.Copy(&buffer, io.LimitReader(response.Body, step+1-int64(buffer.Len()))); err != nil {
			return nil, nil, explain(fmt.Errorf("read %s: %w", what, err), at)
		}

		switch size := int64(buffer.Len()); {
		case size > limit:
			return nil, nil, tooLarge(what, at, limit)
		case size <= step:
			return buffer.Bytes(), release, nil
		}

		entered, err := s.downloads.enterLarge(ctx)
		if err != nil {
			return nil, nil, err
		}

		release = entered

		if response.ContentLength > 0 {
			buffer.Grow(int(response.ContentLength) - buffer.Len() + bytes.MinRead)
		}
	}

	return nil, nil, tooLarge(what, at, limit)
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
	at := shown(response.Request.URL)

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
