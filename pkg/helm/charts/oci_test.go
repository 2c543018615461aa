package charts_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func startRegistry(t *testing.T) *chartserver.Registry {
	t.Helper()

	registry := chartserver.StartRegistry()
	t.Cleanup(registry.Close)

	return registry
}

func TestRegistry(t *testing.T) {
	registry := startRegistry(t)
	old, oldManifest := registry.Push("team/demo", chartserver.ConfigMapChart("demo", "1.0.0+build.1"), nil)
	newest, _ := registry.Push("team/demo", chartserver.ConfigMapChart("demo", "1.2.0"), nil)
	registry.Push("team/demo", chartserver.ConfigMapChart("demo", "2.0.0-rc.1"), nil)

	for _, test := range []struct{ name, version, digest, wantVersion, want string }{
		{name: "newest", wantVersion: "1.2.0", want: newest},
		{name: "exact", version: "1.2.0", wantVersion: "1.2.0", want: newest},
		{name: "with metadata", version: "1.0.0+build.1", wantVersion: "1.0.0+build.1", want: old},
		{name: "range", version: "<1.1.0", wantVersion: "1.0.0+build.1", want: old},
		{name: "pinned", digest: oldManifest, wantVersion: "1.0.0+build.1", want: old},
		{name: "pinned with version", version: "1.0.0+build.1", digest: oldManifest, wantVersion: "1.0.0+build.1", want: old},
	} {
		t.Run(test.name, func(t *testing.T) {
			archive, err := fetch(newFetcher(charts.Options{}), charts.Source{
				Chart: registry.URL("team/demo"), CA: registry.CA(), Version: test.version, Digest: test.digest,
			})
			if err != nil {
				t.Fatal(err)
			}

			resolved := archive.Resolved()
			if resolved.Name != "demo" || resolved.Version != test.wantVersion || resolved.ArchiveDigest != test.want {
				t.Errorf("resolved %+v", resolved)
			}

			if _, err := load(archive); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRegistryIdle(t *testing.T) {
	registry := startRegistry(t)
	_, manifest := registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)

	now := time.Now()
	f := newFetcher(charts.Options{Now: func() time.Time { return now }})
	source := charts.Source{Chart: registry.URL("demo"), CA: registry.CA(), Version: "1.0.0"}

	for range 2 {
		if _, err := fetch(f, source); err != nil {
			t.Fatal(err)
		}

		now = now.Add(time.Minute)
	}

	requests := registry.Requests()
	if diff := cmp.Diff([]string{"HEAD /v2/demo/manifests/1.0.0", "GET /v2/demo/manifests/1.0.0"}, requests[:2]); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"HEAD /v2/demo/manifests/1.0.0"}, requests[3:]); diff != "" {
		t.Error(diff)
	}

	// A pinned chart in the cache needs no request at all.
	source.Digest = manifest
	before := len(registry.Requests())

	if _, err := fetch(f, source); err != nil || len(registry.Requests()) != before {
		t.Errorf("%v, %d requests", err, len(registry.Requests())-before)
	}
}

// TestRegistryIsAskedOnce: many releases of one chart, after a commit or a start of the controller, are one question. Somebody who
// asks for the newest chart gets it.
func TestRegistryIsAskedOnce(t *testing.T) {
	registry := startRegistry(t)
	registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)

	now := time.Now()
	f := newFetcher(charts.Options{Now: func() time.Time { return now }})
	source := charts.Source{Chart: registry.URL("demo"), CA: registry.CA(), Version: "^1"}
	resolve := func(source charts.Source, want string) {
		t.Helper()

		if resolved, err := f.Resolve(t.Context(), source); err != nil || resolved.Version != want {
			t.Fatalf("%+v, %v, want %s", resolved, err, want)
		}
	}

	var releases sync.WaitGroup

	for range 100 {
		releases.Go(func() {
			if _, err := f.Resolve(t.Context(), source); err != nil {
				t.Error(err)
			}
		})
	}

	releases.Wait()

	first := []string{"GET /v2/demo/tags/list", "HEAD /v2/demo/manifests/1.0.0", "GET /v2/demo/manifests/1.0.0"}
	if diff := cmp.Diff(first, registry.Requests()); diff != "" {
		t.Error(diff)
	}

	registry.Push("demo", chartserver.ConfigMapChart("demo", "1.1.0"), nil)
	resolve(source, "1.0.0")

	exact := source
	exact.Version = "1.1.0" // of another version nothing is known
	resolve(exact, "1.1.0")

	later := source
	later.AskedAfter = now.Add(time.Second)
	now = later.AskedAfter
	resolve(later, "1.1.0")
	resolve(source, "1.1.0") // for the others, too

	registry.Push("demo", chartserver.ConfigMapChart("demo", "1.1.1"), nil)
	resolve(later, "1.1.0") // many who ask at one time ask once

	registry.Push("demo", chartserver.ConfigMapChart("demo", "1.2.0"), nil)

	now = now.Add(30 * time.Second)
	resolve(source, "1.2.0")
}

// TestRequestDoesNotJoin: a question that is on its way may have passed what was published since.
func TestRequestDoesNotJoin(t *testing.T) {
	registry := chartserver.StartTLSRepository()
	t.Cleanup(registry.Close)

	begun, goOn := make(chan struct{}), make(chan struct{})

	var asked atomic.Int32

	registry.Handle("/v2/demo/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			_, _ = w.Write([]byte(`{"tags":["1.0.0","1.1.0"]}`))

			return
		}

		close(begun)
		<-goOn

		_, _ = w.Write([]byte(`{"tags":["1.0.0"]}`))
	})

	f := newFetcher(charts.Options{})
	source := charts.Source{Chart: "oci://" + registry.Host() + "/demo", CA: registry.CA()}

	var first sync.WaitGroup

	first.Go(func() {
		_, err := f.Resolve(t.Context(), source)
		wantReason(t, err, charts.NotFound, "/manifests/1.0.0")
	})

	<-begun

	source.AskedAfter = time.Now()
	_, err := f.Resolve(t.Context(), source)
	wantReason(t, err, charts.NotFound, "/manifests/1.1.0")
	close(goOn)
	first.Wait()
}

// TestRegistryErrorsAreNotKept: a chart that was missing a moment ago may have been pushed since.
func TestRegistryErrorsAreNotKept(t *testing.T) {
	registry := startRegistry(t)
	f := newFetcher(charts.Options{})
	source := charts.Source{Chart: registry.URL("demo"), CA: registry.CA(), Version: "1.0.0"}

	_, err := f.Resolve(t.Context(), source)
	wantReason(t, err, charts.NotFound)

	registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)

	if _, err := f.Resolve(t.Context(), source); err != nil {
		t.Error(err)
	}
}

// TestRegistryAnswersOnlyWhomItKnows: what the registry said to somebody with credentials is not for others.
func TestRegistryAnswersOnlyWhomItKnows(t *testing.T) {
	registry := startRegistry(t)
	registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)
	registry.Protect("u", "p")

	f := newFetcher(charts.Options{})
	source := charts.Source{Chart: registry.URL("demo"), CA: registry.CA(), Credentials: charts.Credentials{Username: "u", Password: "p"}}

	if _, err := f.Resolve(t.Context(), source); err != nil {
		t.Fatal(err)
	}

	source.Credentials = charts.Credentials{}
	_, err := f.Resolve(t.Context(), source)
	wantReason(t, err, charts.Unauthorized)
}

func TestRegistryWithCredentials(t *testing.T) {
	registry := startRegistry(t)
	registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)
	registry.Protect("u", "p")

	source := charts.Source{Chart: registry.URL("demo"), CA: registry.CA()}

	_, err := fetch(newFetcher(charts.Options{}), source)
	wantReason(t, err, charts.Unauthorized, "set authSecretRef")

	source.Credentials = charts.Credentials{Username: "u", Password: "canary"}
	_, err = fetch(newFetcher(charts.Options{}), source)
	wantReason(t, err, charts.Unauthorized, "does not accept")

	source.Credentials.Password = "p"
	if _, err := fetch(newFetcher(charts.Options{}), source); err != nil {
		t.Error(err)
	}

	registry.SetRealm("https://tokens.example.net/token")
	_, err = fetch(newFetcher(charts.Options{}), source)
	wantReason(t, err, charts.Unauthorized, "tokens.example.net", "another domain")
}

// Harbor answers a request without credentials with the address of its token service, under Harbor's own name. If the registry
// is reached under another name, that service may not be used.
func TestRegistryWhoseTokenServiceIsElsewhere(t *testing.T) {
	for realm, test := range map[string]struct {
		reason charts.Reason
		word   string
	}{
		"https://harbor.example.net/service/token": {charts.Unauthorized, "another domain"},
		"http://harbor.example.net/service/token":  {charts.Invalid, "not an https URL"},
	} {
		registry := startRegistry(t)
		registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)
		registry.Protect("u", "p")
		registry.TakeBoth()
		registry.SetRealm(realm)

		source := charts.Source{Chart: registry.URL("demo"), CA: registry.CA(), Version: "1.0.0", Credentials: charts.Credentials{Username: "u", Password: "p"}}
		if _, err := fetch(newFetcher(charts.Options{}), source); err != nil {
			t.Error(err)
		}

		source.Credentials.Password = "canary"
		_, err := fetch(newFetcher(charts.Options{}), source)
		wantReason(t, err, test.reason, test.word)
	}
}

// A registry gets credentials when it has asked for them, in the way that it wants, and not for each request anew.
func TestRegistryThatRefusesUnaskedCredentials(t *testing.T) {
	look, manifest := "HEAD /v2/demo/manifests/1.0.0", "GET /v2/demo/manifests/1.0.0"

	for name, test := range map[string]struct {
		arrange func(*chartserver.Registry)
		want    []string // before the archive
	}{
		"open":  {func(*chartserver.Registry) {}, []string{look, manifest}},
		"token": {func(r *chartserver.Registry) { r.Protect("u", "p") }, []string{look, "GET /token", look, manifest}},
		"basic": {func(r *chartserver.Registry) { r.Protect("u", "p"); r.WantBasic() }, []string{look, look, manifest}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := startRegistry(t)
			registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)
			registry.RefuseUnasked()
			test.arrange(registry)

			source := charts.Source{
				Chart: registry.URL("demo"), CA: registry.CA(), Version: "1.0.0", Credentials: charts.Credentials{Username: "u", Password: "p"},
			}
			if _, err := fetch(newFetcher(charts.Options{}), source); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, registry.Requests()[:len(test.want)]); diff != "" {
				t.Error(diff)
			}

			if name == "open" {
				return
			}

			source.Credentials.Password = "canary"
			_, err := fetch(newFetcher(charts.Options{}), source)
			wantReason(t, err, charts.Unauthorized, "does not accept")

			source.Credentials = charts.Credentials{}
			_, err = fetch(newFetcher(charts.Options{}), source)
			wantReason(t, err, charts.Unauthorized, "set authSecretRef")
		})
	}
}

func TestRegistryFaults(t *testing.T) {
	registry := startRegistry(t)
	_, manifest := registry.Push("demo", chartserver.ConfigMapChart("demo", "1.0.0"), nil)

	for _, test := range []struct {
		name                   string
		chart, version, digest string
		reason                 charts.Reason
		words                  []string
	}{
		{name: "no chart", chart: registry.URL("other"), reason: charts.NotFound},
		{name: "no version", chart: registry.URL("demo"), version: "9.9.9", reason: charts.NotFound},
		{name: "no version in range", chart: registry.URL("demo"), version: ">9", reason: charts.NotFound, words: []string{"version >9"}},
		{name: "no such digest", chart: registry.URL("demo"), digest: "sha256:" + strings.Repeat("0", 64), reason: charts.NotFound},
		{name: "pin of another version", chart: registry.URL("demo"), version: "2.0.0", digest: manifest, reason: charts.DigestMismatch, words: []string{"1.0.0"}},
		{name: "tag in the URL", chart: registry.URL("demo:1.0.0"), reason: charts.Invalid, words: []string{"chart.version"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := fetch(newFetcher(charts.Options{}), charts.Source{Chart: test.chart, Version: test.version, Digest: test.digest, CA: registry.CA()})
			wantReason(t, err, test.reason, test.words...)
		})
	}
}

func TestLoopbackRegistryIsRefused(t *testing.T) {
	registry := startRegistry(t)

	_, err := fetch(charts.New(charts.Options{Renderers: renderers}), charts.Source{Chart: registry.URL("demo"), CA: registry.CA()})
	wantReason(t, err, charts.ForbiddenAddress, "loopback")
}

// TestVersionOfAManifest: what a registry names as the version of a chart is kept for each manifest, and a manifest may have 4 MiB.
func TestVersionOfAManifest(t *testing.T) {
	registry := chartserver.StartTLSRepository()
	t.Cleanup(registry.Close)
	registry.Handle("/v2/demo/manifests/1.0.0", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"layers":[{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":"sha256:%s"}],`+
			`"annotations":{"org.opencontainers.image.version":"%s"}}`, strings.Repeat("a", 64), strings.Repeat("1", 1<<20))
	})

	_, err := newFetcher(charts.Options{}).Resolve(t.Context(), charts.Source{Chart: "oci://" + registry.Host() + "/demo", Version: "1.0.0", CA: registry.CA()})
	wantReason(t, err, charts.Invalid, "version of 1048576 bytes")
}
