package charts

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// ociScheme begins the URL of a chart in a registry.
const ociScheme = "oci://"

// Source says where a chart is and which one.
type Source struct {
	// Repository is the http or https URL of a chart repository; empty for an OCI chart.
	Repository string
	// Chart is the chart's name in the repository, or its oci:// URL without tag or digest.
	Chart string
	// Version is a version or a range of versions. Empty means the newest stable one.
	Version string
	// Digest pins the chart: sha256:<hex> of the archive, or of the OCI manifest. Empty pins nothing.
	Digest string
	// Credentials are sent to the repository's own host only. The zero value sends none.
	Credentials Credentials
	// CA holds PEM certificates that are trusted in addition to the system's. May be empty.
	CA []byte
	// Keyring is the public OpenPGP keyring, binary or armoured, that the chart's provenance is checked
	// with. Nil checks nothing.
	Keyring []byte
	// AskedAfter is since when the repository or registry has to have been asked; zero: what counts for others counts.
	AskedAfter time.Time
	// Tenant shares the slots of the renderers with all sources of the same one. It says nothing about the chart.
	Tenant string
}

// IsOCI reports whether the chart is in a registry; Repository is not used then.
func (s *Source) IsOCI() bool { return strings.HasPrefix(s.Chart, ociScheme) }

// Host is the host (with its port, if it is written) of the repository or registry; empty if the
// source has none.
func (s *Source) Host() string {
	location := s.Repository
	if s.IsOCI() {
		location = s.Chart
	}

	parsed, err := url.Parse(location)
	if err != nil {
		return ""
	}

	return parsed.Host
}

// scope separates what was fetched with one set of credentials from what was fetched with another:
// who has no access must not find a chart in the cache either.
func (s *Source) scope() string {
	return sum(s.Repository, s.Host(), s.Credentials.Username, s.Credentials.Password, string(s.CA))
}

// sum is a hash over texts that cannot be confused with one another.
func sum(texts ...string) string {
	hash := sha256.New()

	for _, text := range texts {
		inner := sha256.Sum256([]byte(text))
		hash.Write(inner[:])
	}

	return hex.EncodeToString(hash.Sum(nil))
}

// digestOf is the digest of a text in the form sha256:<hex>.
func digestOf(data []byte) string {
	hash := sha256.Sum256(data)

	return "sha256:" + hex.EncodeToString(hash[:])
}

// Resolved is the chart that a Source meant when it was looked up.
type Resolved struct {
	// Name of the chart as it is asked for: the last part of an OCI URL.
	Name string
	// Version of the chart.
	Version string
	// ArchiveDigest is sha256:<hex> of the chart's archive.
	ArchiveDigest string
	// ManifestDigest is sha256:<hex> of the OCI manifest; empty for a repository.
	ManifestDigest string

	location  string // URL of the archive; of a registry only what comes before the digest
	size      int64  // of the archive if it is known, else 0
	signature string // digest of the provenance layer of a registry; empty if there is none
}

// Known is a chart that Resolve found with the same source, and of which only this was written down: it is had only if it is
// kept here, because where it was is not known any more.
func Known(source Source, version, archiveDigest string) *Resolved {
	name := source.Chart
	if source.IsOCI() {
		name = path.Base(name)
	}

	return &Resolved{Name: name, Version: version, ArchiveDigest: archiveDigest}
}

// unnamed is the error of a chart of which it is not known where it is. The next Resolve finds out.
func (r *Resolved) unnamed() error {
	return fail(Unreachable, "chart %s %s is not kept here any more, and the repository did not answer when it was asked", r.Name, r.Version)
}

// fullLocation is the URL of the archive, of a registry too.
func (r *Resolved) fullLocation() string {
	if r.ManifestDigest != "" {
		return r.location + r.ArchiveDigest
	}

	return r.location
}

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

const (
	// maxProvenanceBytes is the largest provenance file.
	maxProvenanceBytes = 1 << 20
	// signedBytes is how much is remembered of what was found to be signed: some ten thousand charts.
	signedBytes = 1 << 20
)

// verify checks with the keyring, if there is one, that a chart is signed. A
// provenance file names the digest of the archive, so the archive itself is not
// needed: what is deployed already is checked without a download of the chart.
// What was found to be signed is remembered for as long as the process runs.
func (f *Fetcher) verify(ctx context.Context, s *sourceClient, source *Source, resolved *Resolved) error {
	if source.Keyring == nil {
		return nil
	}

	key := sum(source.scope(), resolved.Name, resolved.Version, resolved.ArchiveDigest, resolved.location, string(source.Keyring))
	if f.signed.get(key) != nil {
		return nil
	}

	if resolved.location == "" {
		return resolved.unnamed()
	}

	var (
		file []byte
		err  error
	)

	if resolved.ManifestDigest != "" {
		file, err = f.downloadSignature(ctx, s, resolved)
	} else {
		file, err = s.provenance(ctx, resolved)
	}

	if err != nil {
		return err
	}

	wanted := render.Provenance{Name: resolved.Name, Version: resolved.Version, Digest: resolved.ArchiveDigest, Files: fileNames(resolved)}
	if err := f.options.Renderers.CheckProvenance(ctx, source.Tenant, wanted, source.Keyring, file); err != nil {
		return explainProvenance(resolved, err)
	}

	f.signed.put(key, true, int64(len(key)))

	return nil
}

// fileNames are the names under which a provenance file may list the archive.
func fileNames(resolved *Resolved) []string {
	names := []string{resolved.Name + "-" + resolved.Version + ".tgz"}
	if resolved.ManifestDigest != "" {
		return names
	}

	// Without a query, which is no part of a file's name.
	if location, err := url.Parse(resolved.location); err == nil && path.Base(location.Path) != names[0] {
		names = append(names, path.Base(location.Path))
	}

	return names
}

// explainProvenance says why a provenance file does not count.
func explainProvenance(resolved *Resolved, err error) error {
	about := fmt.Sprintf("chart %s %s", resolved.Name, resolved.Version)

	var failure *render.Failure
	if errors.As(err, &failure) {
		return fail(Unverified, "%s: %s", about, redact.Line(failure.Text))
	}

	return explainWorker(err, about+": its provenance file")
}
