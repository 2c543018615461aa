package charts_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// Many charts have as many long tags as one may have, and a registry that is slow to send the last page. Nobody holds the
// tags of the pages before.
func TestManyTagsAtOnce(t *testing.T) {
	const pages = 3

	lookups := foreigntest.AtOnce(16)

	page := []byte(`{"tags":["1.0.0"` + strings.Repeat(`,"`+strings.Repeat("x", 125)+`"`, foreigntest.Load(32_000)) + `]}`)
	registry := chartserver.StartTLSRepository()
	t.Cleanup(registry.Close)

	var arrived atomic.Int32

	all := make(chan struct{}) // closed when the last page is asked for by all

	for at := range pages {
		registry.Handle(fmt.Sprintf("/v2/demo/tags/list%d", at), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`</v2/demo/tags/list%d>; rel="next"`, at+1))
			_, _ = w.Write(page)
		})
	}

	registry.Handle("/v2/demo/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `</v2/demo/tags/list0>; rel="next"`)
		_, _ = w.Write([]byte(`{"tags":["1.1.0"]}`))
	})
	registry.Handle(fmt.Sprintf("/v2/demo/tags/list%d", pages), func(w http.ResponseWriter, request *http.Request) {
		if int(arrived.Add(1)) == lookups {
			close(all)
		}

		select {
		case <-all:
		case <-request.Context().Done(): // a lookup that has failed is not waited for
		}

		_, _ = w.Write([]byte(`{"tags":["1.0.1"]}`))
	})

	fetcher := newFetcher(charts.Options{Timeout: await.Limit})

	foreigntest.WantPeak(t, 96<<20, func() {
		var lookedUp sync.WaitGroup

		for at := range lookups {
			// What one asks is not what another asks.
			credentials := charts.Credentials{Username: fmt.Sprint(at), Password: "p"}

			lookedUp.Go(func() {
				_, err := fetcher.Resolve(t.Context(), charts.Source{Chart: "oci://" + registry.Host() + "/demo", CA: registry.CA(), Credentials: credentials})
				wantReason(t, err, charts.NotFound, "/manifests/1.1.0")
			})
		}

		lookedUp.Wait()
	})
}

// Which tag is chosen does not depend on where the pages end.
func TestTagsOnPages(t *testing.T) {
	registry := chartserver.StartTLSRepository()
	t.Cleanup(registry.Close)

	answers := []string{`{"tags":["1.0.0","2.0.0-rc.1"]}`, `{"tags":["1.2.0_b1","other"]}`, `{"tags":null}`, `{"tags":["1.1.0","1.2.0_b2","latest"]}`}

	for at, answer := range answers {
		registry.Handle(fmt.Sprintf("/v2/demo/tags/list%s", strings.Repeat("x", at)), func(w http.ResponseWriter, _ *http.Request) {
			if at+1 < len(answers) {
				w.Header().Set("Link", fmt.Sprintf(`</v2/demo/tags/list%s>; rel="next"`, strings.Repeat("x", at+1)))
			}

			_, _ = w.Write([]byte(answer))
		})
	}

	for wanted, found := range map[string]string{
		"": "/manifests/1.2.0_b1", "<1.2": "/manifests/1.1.0", "latest": "/manifests/latest", "other": "/manifests/other", ">=2.0.0-0": "/manifests/2.0.0-rc.1", "3.x": "no version 3.x",
	} {
		_, err := newFetcher(charts.Options{}).Resolve(t.Context(), charts.Source{Chart: "oci://" + registry.Host() + "/demo", Version: wanted, CA: registry.CA()})
		wantReason(t, err, charts.NotFound, found)
	}

	_, err := newFetcher(charts.Options{}).Resolve(t.Context(), charts.Source{Chart: "oci://" + registry.Host() + "/demo", Version: "nonsense here", CA: registry.CA()})
	wantReason(t, err, charts.Invalid, "neither a version")
}

// A list of tags that is not read to its end says nothing about the newest version.
func TestTagsThatAreCutOff(t *testing.T) {
	for name, test := range map[string]struct {
		next   func(registry *chartserver.Repository, at int) string
		reason charts.Reason
		words  []string
	}{
		"more pages than are read": {
			func(_ *chartserver.Repository, at int) string {
				return fmt.Sprintf(`</v2/demo/tags/list?last=%d>; rel="next"`, at)
			},
			charts.TooLarge, []string{"more than 50 pages", "chart.version"},
		},
		"another host": {
			func(*chartserver.Repository, int) string {
				return `<https://tags.example.net/v2/demo/tags/list>; rel="next"`
			},
			charts.Invalid, []string{"/v2/demo/tags/list", "tags.example.net"},
		},
		"another scheme": {
			func(registry *chartserver.Repository, _ int) string {
				return "<http://" + registry.Host() + `/v2/demo/tags/list>; rel="next"`
			},
			charts.Invalid, []string{"http://"},
		},
		"no URL": {
			func(*chartserver.Repository, int) string { return `<:>; rel="next"` }, charts.Invalid, []string{"/v2/demo/tags/list"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := chartserver.StartTLSRepository()
			t.Cleanup(registry.Close)

			pages := 0

			registry.Handle("/v2/demo/tags/list", func(w http.ResponseWriter, _ *http.Request) {
				pages++

				w.Header().Set("Link", test.next(registry, pages))
				_, _ = fmt.Fprintf(w, `{"tags":["1.%d.0","stable"]}`, pages)
			})

			_, err := newFetcher(charts.Options{}).Resolve(t.Context(), charts.Source{Chart: "oci://" + registry.Host() + "/demo", CA: registry.CA()})
			wantReason(t, err, test.reason, test.words...)

			// A tag that is asked for by its name is found where it is.
			pages = 0
			source := charts.Source{Chart: "oci://" + registry.Host() + "/demo", Version: "stable", CA: registry.CA()}
			_, err = newFetcher(charts.Options{}).Resolve(t.Context(), source)
			wantReason(t, err, charts.NotFound, "/manifests/stable")
		})
	}
}

// A page has as many tags as most registries give at most.
func TestTagsAreAskedForInLargePages(t *testing.T) {
	registry := chartserver.StartTLSRepository()
	t.Cleanup(registry.Close)

	var asked string

	registry.Handle("/v2/demo/tags/list", func(w http.ResponseWriter, request *http.Request) {
		asked = request.URL.RawQuery
		_, _ = w.Write([]byte(`{"tags":["1.0.0"]}`))
	})

	_, err := newFetcher(charts.Options{}).Resolve(t.Context(), charts.Source{Chart: "oci://" + registry.Host() + "/demo", CA: registry.CA()})
	wantReason(t, err, charts.NotFound, "/manifests/1.0.0")

	if asked != "n=1000" {
		t.Errorf("asked with %q", asked)
	}
}
