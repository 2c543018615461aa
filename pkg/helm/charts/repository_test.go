package charts_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

func newFetcher(options charts.Options) *charts.Fetcher {
	options.Guard.Allowed = loopback()

	if options.Renderers == nil {
		options.Renderers = renderers
	}

	return charts.New(options)
}

// fetch resolves and opens.
func fetch(f *charts.Fetcher, source charts.Source) (*charts.Archive, error) {
	resolved, err := f.Resolve(context.Background(), source)
	if err != nil {
		return nil, err
	}

	return f.Open(context.Background(), source, resolved)
}

// wantReason fails unless err is an *Error of the reason whose text has all the words and no canary.
func wantReason(t *testing.T, err error, reason charts.Reason, words ...string) {
	t.Helper()

	var failure *charts.Error
	if !errors.As(err, &failure) || failure.Reason != reason {
		t.Fatalf("got %v, want reason %s", err, reason)
	}

	for _, word := range words {
		if !strings.Contains(failure.Message, word) {
			t.Errorf("%q does not say %q", failure.Message, word)
		}
	}

	if strings.Contains(failure.Message, "canary") {
		t.Errorf("%q holds a secret", failure.Message)
	}
}

func startRepository(t *testing.T) *chartserver.Repository {
	t.Helper()

	repository := chartserver.StartRepository()
	t.Cleanup(repository.Close)

	return repository
}

func TestRepository(t *testing.T) {
	repository := startRepository(t)
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))
	newest := repository.Add(chartserver.ConfigMapChart("demo", "1.1.0"))
	repository.Add(chartserver.ConfigMapChart("demo", "2.0.0-rc.1"))

	archive, err := fetch(newFetcher(charts.Options{}), charts.Source{Repository: repository.URL() + "/", Chart: "demo"})
	if err != nil {
		t.Fatal(err)
	}

	resolved := archive.Resolved()
	if resolved.Version != "1.1.0" || resolved.ArchiveDigest != newest || resolved.ManifestDigest != "" {
		t.Errorf("resolved %+v", resolved)
	}

	chart, err := load(archive)
	if err != nil || chart.Name() != "demo" || chart.Metadata.AppVersion != "app-1.1.0" {
		t.Errorf("loaded %+v, %v", chart, err)
	}
}

// TestRequestsOfOneMomentAskOnce: somebody asks for all releases of a repository at once, which has no ETags.
func TestRequestsOfOneMomentAskOnce(t *testing.T) {
	repository := startRepository(t)
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	now := time.Now()
	f := newFetcher(charts.Options{Now: func() time.Time { return now }})
	source := charts.Source{Repository: repository.URL(), Chart: "demo"}
	resolve := func(want string) {
		t.Helper()

		if resolved, err := f.Resolve(t.Context(), source); err != nil || resolved.Version != want {
			t.Fatalf("%+v, %v, want %s", resolved, err, want)
		}
	}

	resolve("1.0.0")
	repository.Add(chartserver.ConfigMapChart("demo", "1.1.0"))

	now = now.Add(time.Second)
	resolve("1.0.0")

	source.AskedAfter = now
	for range 100 {
		resolve("1.1.0")

		now = now.Add(time.Millisecond)
	}

	source.Version = "2.0.0"
	source.AskedAfter = now

	_, err := f.Resolve(t.Context(), source)
	wantReason(t, err, charts.NotFound)

	if got := len(repository.Requests()); got != 3 {
		t.Errorf("%d requests, want 3: %v", got, repository.Requests())
	}
}

func TestIdleChecksDownloadNothing(t *testing.T) {
	repository := startRepository(t)
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	now := time.Unix(1000, 0)
	f := newFetcher(charts.Options{Now: func() time.Time { return now }})
	source := charts.Source{Repository: repository.URL(), Chart: "demo"}

	for range 3 {
		if _, err := fetch(f, source); err != nil {
			t.Fatal(err)
		}

		now = now.Add(time.Minute)
	}

	want := []string{"GET /index.yaml 200", "GET /demo-1.0.0.tgz 200", "GET /index.yaml 304", "GET /index.yaml 304"}
	if diff := cmp.Diff(want, repository.Requests()); diff != "" {
		t.Error(diff)
	}
}

func TestAnIndexCountsForAMoment(t *testing.T) {
	repository := startRepository(t)
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	f := newFetcher(charts.Options{})
	source := charts.Source{Repository: repository.URL(), Chart: "demo", Version: "1.0.0"}

	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := fetch(f, source); err != nil {
				t.Error(err)
			}
		})
	}

	group.Wait()

	if got := repository.Downloads(); got != 1 {
		t.Errorf("%d downloads, want 1: %v", got, repository.Requests())
	}

	// A version that was published since is found at once.
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.1"))
	source.Version = "1.0.1"

	if _, err := fetch(f, source); err != nil {
		t.Error(err)
	}
}

func TestARepositoryWithoutDigests(t *testing.T) {
	repository := startRepository(t)
	repository.WithoutDigests()
	digest := repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	f := newFetcher(charts.Options{})
	source := charts.Source{Repository: repository.URL(), Chart: "demo"}

	archive, err := fetch(f, source)
	if err != nil || archive.Resolved().ArchiveDigest != digest {
		t.Fatalf("%+v, %v", archive, err)
	}

	source.Digest = digest
	if _, err := fetch(f, source); err != nil {
		t.Error(err)
	}

	source.Digest = "sha256:" + strings.Repeat("0", 64)
	_, err = fetch(f, source)
	wantReason(t, err, charts.DigestMismatch, digest, source.Digest)
}

// A digest pins a chart, also when a newer version of the range is published.
func TestAPinOutlastsNewerVersions(t *testing.T) {
	repository := startRepository(t)
	pinned := repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	f := newFetcher(charts.Options{})
	source := charts.Source{Repository: repository.URL(), Chart: "demo", Version: "1.x", Digest: pinned}
	want := func(source charts.Source, version string) {
		t.Helper()

		if archive, err := fetch(f, source); err != nil || archive.Resolved().Version != version || archive.Resolved().ArchiveDigest != source.Digest {
			t.Fatalf("%+v, %v, want %s", archive, err, version)
		}
	}

	want(source, "1.0.0")

	newer := source
	newer.Digest = repository.Add(chartserver.ConfigMapChart("demo", "1.1.0"))
	want(newer, "1.1.0") // the index of a moment ago does not have it
	want(source, "1.0.0")

	source.Version = ""
	want(source, "1.0.0")

	source.Version = "1.1.0"
	_, err := fetch(f, source)
	wantReason(t, err, charts.DigestMismatch, "1.1.0", newer.Digest, pinned)

	source.Version = ">1.0.0"
	_, err = fetch(f, source)
	wantReason(t, err, charts.DigestMismatch, "1.1.0", newer.Digest, pinned)
}

func TestRepositoryFaults(t *testing.T) {
	zeros := strings.Repeat("0", 64)

	for _, test := range []struct {
		name    string
		source  charts.Source
		arrange func(*chartserver.Repository)
		reason  charts.Reason
		words   []string
	}{
		{name: "no chart", source: charts.Source{Chart: "other"}, reason: charts.NotFound, words: []string{"no chart other"}},
		{name: "no version", source: charts.Source{Version: "9.9.9"}, reason: charts.NotFound, words: []string{"version 9.9.9 of chart demo"}},
		{name: "nonsense version", source: charts.Source{Version: "a b c"}, reason: charts.Invalid, words: []string{"chart.version"}},
		{name: "pin differs from the index", source: charts.Source{Digest: "sha256:" + zeros}, reason: charts.DigestMismatch, words: []string{"chart.digest"}},
		{name: "index lies", arrange: func(r *chartserver.Repository) { r.AddEntry("demo", "1.0.0", "demo-1.0.0.tgz", zeros) },
			reason: charts.DigestMismatch, words: []string{"replaced or damaged"}},
		{name: "archive is missing", arrange: func(r *chartserver.Repository) { r.AddEntry("demo", "1.0.0", "gone.tgz", zeros) },
			reason: charts.NotFound, words: []string{"/gone.tgz", "404"}},
		{name: "file URL", arrange: func(r *chartserver.Repository) { r.AddEntry("demo", "1.0.0", "file:///etc/passwd", zeros) },
			reason: charts.Invalid, words: []string{"neither http nor https"}},
		{name: "user info in the index", arrange: func(r *chartserver.Repository) {
			r.AddEntry("demo", "1.0.0", "http://canary:canary@127.0.0.1/x.tgz", zeros)
		},
			reason: charts.Invalid, words: []string{"user info"}},
		{name: "credentials wanted", arrange: func(r *chartserver.Repository) { r.Protect("u", "p") }, reason: charts.Unauthorized, words: []string{"set authSecretRef"}},
		{name: "credentials wrong", source: charts.Source{Credentials: charts.Credentials{Username: "u", Password: "canary"}},
			arrange: func(r *chartserver.Repository) { r.Protect("u", "p") }, reason: charts.Unauthorized, words: []string{"does not accept"}},
		{name: "index is a page", arrange: func(r *chartserver.Repository) { r.AddFile("index.yaml", nil); answer(r, "/index.yaml", "<html>") }, reason: charts.Invalid},
		{name: "broken server", arrange: func(r *chartserver.Repository) { status(r, "/index.yaml", http.StatusBadGateway) },
			reason: charts.Unreachable, words: []string{"502"}},
		{name: "redirect to the metadata service", arrange: redirect("http://169.254.169.254/latest/meta-data/?canary"),
			reason: charts.ForbiddenAddress, words: []string{"link-local", "169.254.169.254"}},
		{name: "redirect to IPv6 metadata", arrange: redirect("http://[fd00:ec2::254]/"), reason: charts.ForbiddenAddress, words: []string{"metadata"}},
		{name: "redirect without end", arrange: redirect("index.yaml"), reason: charts.Unreachable, words: []string{"redirects more than"}},
		{name: "redirect to a file", arrange: redirect("file:///etc/passwd"), reason: charts.Invalid, words: []string{"no plain http"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			repository := startRepository(t)
			repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

			if test.arrange != nil {
				test.arrange(repository)
			}

			test.source.Repository = repository.URL()
			if test.source.Chart == "" {
				test.source.Chart = "demo"
			}

			_, err := fetch(newFetcher(charts.Options{}), test.source)
			wantReason(t, err, test.reason, test.words...)
		})
	}
}

func answer(r *chartserver.Repository, path, text string) {
	r.Handle(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

func status(r *chartserver.Repository, path string, code int) {
	r.Handle(path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

func redirect(location string) func(*chartserver.Repository) {
	return func(r *chartserver.Repository) { r.Handle("/index.yaml", leadTo(location)) }
}

func TestLoopbackIsRefusedUnlessAllowed(t *testing.T) {
	repository := startRepository(t)

	_, err := charts.New(charts.Options{Renderers: renderers}).Resolve(context.Background(), charts.Source{Repository: repository.URL(), Chart: "demo"})
	wantReason(t, err, charts.ForbiddenAddress, "loopback")

	if got := repository.Requests(); len(got) != 0 {
		t.Errorf("the server was asked: %v", got)
	}
}

func TestCredentialsStayWithTheRepository(t *testing.T) {
	home, elsewhere := startRepository(t), startRepository(t)
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	elsewhere.AddFile("demo.tgz", chart.Pack())
	elsewhere.AddFile("redirected.tgz", chart.Pack())
	home.Protect("u", "p")

	source := charts.Source{Repository: home.URL(), Chart: "demo", Credentials: charts.Credentials{Username: "u", Password: "p"}}
	digest := strings.TrimPrefix(chartserver.Digest(chart.Pack()), "sha256:")

	home.AddEntry("demo", "1.0.0", elsewhere.URL()+"/demo.tgz", digest)

	if _, err := fetch(newFetcher(charts.Options{}), source); err != nil {
		t.Fatal(err)
	}

	home.AddEntry("demo", "1.0.0", "moved.tgz?signature=canary", digest)
	home.Handle("/moved.tgz", func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, elsewhere.URL()+"/redirected.tgz", http.StatusFound)
	})

	if _, err := fetch(newFetcher(charts.Options{}), source); err != nil {
		t.Fatal(err)
	}

	headers := elsewhere.Headers()
	if len(headers) != 2 {
		t.Fatalf("%d requests went elsewhere, want 2", len(headers))
	}

	for _, header := range headers {
		if header.Get("Authorization") != "" {
			t.Error("credentials left their host")
		}

		if got := header.Get("Referer"); got != "" {
			t.Errorf("the next host is told of %s", got)
		}
	}
}

// A repository that sends back the credentials that it got, here in the address of a redirect.
func TestEchoedCredentialsAreNotShown(t *testing.T) {
	const password = "s3cret-pass/word"

	home := startRepository(t)
	home.Protect("u", password)
	home.Handle("/index.yaml", func(w http.ResponseWriter, request *http.Request) {
		_, sent, _ := request.BasicAuth()
		http.Redirect(w, request, "ftp://127.0.0.1/"+url.PathEscape(sent)+"/"+strings.TrimPrefix(request.Header.Get("Authorization"), "Basic "), http.StatusFound)
	})
	home.Handle("/echo/index.yaml", func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, "/x/"+request.Header.Get("Authorization"), http.StatusFound)
	})

	for _, repository := range []string{home.URL(), home.URL() + "/echo"} {
		_, err := fetch(newFetcher(charts.Options{}), charts.Source{
			Repository: repository, Chart: "demo", Credentials: charts.Credentials{Username: "u", Password: password},
		})
		if err == nil {
			t.Fatal("no error")
		}

		encoded := base64.StdEncoding.EncodeToString([]byte("u:" + password))
		for _, secret := range []string{"s3cret", "word", encoded, encoded[4:20]} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s shows %s", err, secret)
			}
		}
	}
}

func TestACachedChartIsNotForOthers(t *testing.T) {
	repository := startRepository(t)
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	f := newFetcher(charts.Options{})
	source := charts.Source{Repository: repository.URL(), Chart: "demo", Credentials: charts.Credentials{Username: "u", Password: "p"}}

	repository.Protect("u", "p")

	if _, err := fetch(f, source); err != nil {
		t.Fatal(err)
	}

	source.Credentials = charts.Credentials{}
	_, err := fetch(f, source)
	wantReason(t, err, charts.Unauthorized)
}

func TestPrivateAuthority(t *testing.T) {
	repository := chartserver.StartTLSRepository()
	t.Cleanup(repository.Close)
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	source := charts.Source{Repository: repository.URL(), Chart: "demo"}
	_, err := fetch(newFetcher(charts.Options{}), source)
	wantReason(t, err, charts.TLSFailed, "caSecretRef")

	source.CA = []byte("no certificate")
	_, err = fetch(newFetcher(charts.Options{}), source)
	wantReason(t, err, charts.Invalid, "ca.crt")

	source.CA = repository.CA()
	if _, err := fetch(newFetcher(charts.Options{}), source); err != nil {
		t.Error(err)
	}

	// Encrypted stays encrypted.
	redirect("http://" + repository.Host() + "/index.yaml")(repository)

	_, err = fetch(newFetcher(charts.Options{}), source)
	wantReason(t, err, charts.Invalid, "unencrypted")
}
