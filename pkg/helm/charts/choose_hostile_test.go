package charts_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// manyParts is a range that no version of a chart satisfies, and that takes long to compare with each.
var manyParts = strings.TrimSuffix(strings.Repeat(">9||", 32), "||")

// Comparing all versions of a chart with a range is bounded, also if they are on many pages.
func TestTooManyVersionsForARange(t *testing.T) {
	const count, pages = 20_000, 4

	server := chartserver.StartTLSRepository()
	t.Cleanup(server.Close)

	index := &strings.Builder{}
	index.WriteString("apiVersion: v1\nentries:\n  demo:\n")

	for i := range count {
		fmt.Fprintf(index, "  - {version: 1.%d.0, urls: [a.tgz]}\n", i)
	}

	server.Handle("/index.yaml", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, index) })

	for page := range pages {
		server.Handle(fmt.Sprintf("/v2/demo/tags/list%s", strings.Repeat("x", page)), func(w http.ResponseWriter, _ *http.Request) {
			if page+1 < pages {
				w.Header().Set("Link", fmt.Sprintf(`</v2/demo/tags/list%s>; rel="next"`, strings.Repeat("x", page+1)))
			}

			fmt.Fprint(w, `{"tags":[`)

			for i := range count / pages {
				fmt.Fprintf(w, `"1.%d.0",`, page*count/pages+i)
			}

			fmt.Fprint(w, `"latest"]}`)
		})
	}

	repository := charts.Source{Repository: server.URL(), Chart: "demo", CA: server.CA()}
	registry := charts.Source{Chart: "oci://" + server.Host() + "/demo", CA: server.CA()}

	for name, source := range map[string]charts.Source{"a repository": repository, "a registry": registry} {
		t.Run(name, func(t *testing.T) {
			fetcher := newFetcher(charts.Options{})

			source.Version = manyParts
			_, err := fetcher.Resolve(t.Context(), source)
			wantReason(t, err, charts.TooLarge, "has too many versions for a range of this many parts (32)", "set chart.version to one version")

			source.Version = ">=1.5 <2"
			if found, err := fetcher.Resolve(t.Context(), source); source.IsOCI() {
				wantReason(t, err, charts.NotFound, "/manifests/1.19999.0")
			} else if err == nil {
				t.Error(found)
			} else {
				wantReason(t, err, charts.NotFound, "a.tgz")
			}
		})
	}
}
