package charts_test

import (
	"net/http"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// What a registry sends is bounded by what it becomes.
func TestHostileRegistries(t *testing.T) {
	tags := func(count int, tag string) string {
		return `{"name":"demo","tags":[` + strings.Repeat(`"`+tag+`",`, count) + `"1.0.0"]}`
	}

	for name, test := range map[string]struct {
		version string
		answers map[string]string // by path
		want    string
		parsed  bool // page by page, which leaves garbage
	}{
		"millions of empty tags": {answers: map[string]string{"tags/list": tags(1_300_000, "")}, want: "/v2/demo/tags/list: the list of tags has more than 110000 values"},
		"deep tags":              {answers: map[string]string{"tags/list": `{"tags":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`}, want: "the list of tags is nested deeper"},
		"tags without end":       {answers: map[string]string{"tags/list": tags(9000, "x")}, want: "/v2/demo/tags/list has more than 100000 tags: set chart.version", parsed: true},
		"no tags":                {answers: map[string]string{"tags/list": "a: &a [*a]"}, want: "something that is no list of tags"},
		"layers": {
			version: "1.0.0", answers: map[string]string{"manifests/1.0.0": `{"layers":[` + strings.Repeat("{},", 1_300_000) + `{}]}`},
			want: "the manifest has more than 10000 values",
		},
		"annotations": {
			version: "1.0.0", answers: map[string]string{"manifests/1.0.0": `{"annotations":{` + strings.Repeat(`"a":"",`, 500_000) + `"b":""}}`},
			want: "the manifest has more than 10000 values",
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := chartserver.StartTLSRepository()
			t.Cleanup(registry.Close)

			for path, answer := range test.answers {
				registry.Handle("/v2/demo/"+path, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Link", `</v2/demo/tags/list?next>; rel="next"`)
					_, _ = w.Write([]byte(answer))
				})
			}

			source := charts.Source{Chart: "oci://" + registry.Host() + "/demo", Version: test.version, CA: registry.CA()}

			run := func() {
				_, err := fetch(newFetcher(charts.Options{}), source)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			}

			// The answers themselves have up to 4 MiB, and are read and counted. Decoded, the tags took 340 MiB.
			if test.parsed {
				foreigntest.WantPeak(t, 64<<20, run)
			} else {
				foreigntest.WantAllocated(t, 64<<20, run)
			}
		})
	}
}

// A host that switches to another protocol is no registry: neither memory nor time is spent on it.
func TestRegistriesThatSwitchProtocols(t *testing.T) {
	for path, source := range map[string]charts.Source{
		"/v2/demo/manifests/1.0.0": {Chart: "oci://%s/demo", Version: "1.0.0"},
		"/v2/demo/tags/list":       {Chart: "oci://%s/demo"},
		"/index.yaml":              {Repository: "https://%s", Chart: "demo"},
	} {
		for _, endless := range []bool{true, false} {
			registry := chartserver.StartTLSRepository()
			registry.Handle(path, func(w http.ResponseWriter, _ *http.Request) { foreigntest.SwitchProtocols(w, endless) })

			host := registry.Host()
			one := source
			one.Chart, one.Repository = strings.ReplaceAll(one.Chart, "%s", host), strings.ReplaceAll(one.Repository, "%s", host)
			one.CA = registry.CA()

			var err error

			foreigntest.WantPeak(t, 32<<20, func() { _, err = fetch(newFetcher(charts.Options{}), one) })

			if err == nil || !strings.Contains(err.Error(), "another protocol") {
				t.Errorf("%s, endless %t: %v", path, endless, err)
			}

			registry.Close()
		}
	}
}

// HTTP/2 has frames that are part of no answer, so no bound would count them.
func TestRegistriesAreAskedByHTTP1(t *testing.T) {
	repository := chartserver.StartTLSRepository()
	defer repository.Close()

	var protocol string

	repository.Handle("/index.yaml", func(_ http.ResponseWriter, r *http.Request) { protocol = r.Proto })
	_, _ = fetch(newFetcher(charts.Options{}), charts.Source{Repository: "https://" + repository.Host(), Chart: "demo", CA: repository.CA()})

	if protocol != "HTTP/1.1" {
		t.Errorf("it was asked by %q", protocol)
	}
}
