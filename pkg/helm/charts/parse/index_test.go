package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// largeIndex is an index as `helm repo index` writes one, of that many charts and versions of each: some 900 bytes and
// 60 values for a version, as in the largest public repositories.
func largeIndex(charts, versions int) []byte {
	text := bytes.NewBufferString("apiVersion: v1\nentries:\n")

	for chart := range charts {
		fmt.Fprintf(text, "  chart-%d:\n", chart)

		for version := range versions {
			fmt.Fprintf(text, `  - annotations:
      category: Infrastructure
      images: |
        - name: chart-%[1]d
          image: registry.example.com/chart-%[1]d:%[2]d.0.0-debian-12-r0
      licenses: Apache-2.0
    apiVersion: v2
    appVersion: %[2]d.0.0
    created: "2024-05-21T10:00:00.%09[2]dZ"
    dependencies:
    - name: common
      repository: oci://registry.example.com/charts
      tags:
      - common
      version: 2.x.x
    description: Chart number %[1]d is an example of a description that is as long as
      real ones are, and goes on in a second line.
    digest: %064[2]d
    home: https://example.com
    icon: https://example.com/assets/stacks/chart-%[1]d/img/chart-%[1]d-stack-220x234.png
    keywords:
    - one
    - two
    - three
    maintainers:
    - name: Someone
      url: https://example.com/charts
    name: chart-%[1]d
    sources:
    - https://example.com/charts/tree/main/chart-%[1]d
    urls:
    - https://charts.example.com/chart-%[1]d-%[2]d.0.0.tgz
    version: %[2]d.0.0
`, chart, version)
		}
	}

	text.WriteString("generated: \"2024-05-21T10:00:00Z\"\n")

	return text.Bytes()
}

// What is read in pieces is what is read at once, and what Helm reads.
func TestAnIndexInPieces(t *testing.T) {
	foreigntest.Sequential(t)

	text := largeIndex(20, 100)

	var helm struct {
		Entries map[string][]struct {
			Version, Digest string
			URLs            []string
		}
	}
	if err := yaml.Unmarshal(text, &helm); err != nil {
		t.Fatal(err)
	}

	want := map[string][]render.Entry{}

	for chart, entries := range helm.Entries {
		for _, entry := range entries {
			want[chart] = append(want[chart], render.Entry{Version: entry.Version, URL: entry.URLs[0], Digest: entry.Digest})
		}
	}

	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}

	windows := bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))

	for name, text := range map[string][]byte{"YAML": text, "JSON": asJSON, "from Windows": windows, "with a marker": append([]byte("---\n"), text...)} {
		got, err := Index(text)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, got.Charts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestFormsOfAnIndex(t *testing.T) {
	for name, text := range map[string]string{
		"flow style":                 `{apiVersion: v1, entries: {demo: [{version: 1.0.0, urls: [a, b], digest: d}]}}`,
		"JSON":                       `{"generated":["x",{}],"entries":{"demo":[{"version":"1.0.0","urls":["a"],"digest":"d"},{}],"none":null,"empty":[]}}`,
		"lists that are indented":    "entries:\n    demo:\n        - version: 1.0.0\n          urls:\n              - a\n          digest: d\nz: 1\n",
		"comments and blank lines":   "# a\nentries:\n\n  # b\n  demo:\n  # c\n\n  - version: 1.0.0\n# d\n    urls:\n\n    - a\n    digest: d\n...\nentries: x\n",
		"a chart of one line":        "entries:\n  demo: [{version: 1.0.0, urls: [a], digest: d}]\n  none: []\n  nothing: ~\n",
		"a chart on the next line":   "entries:\n  demo:\n    [{version: 1.0.0, urls: [a],\n  digest: d}]\n",
		"aliases between the charts": "entries:\n  other: &o\n  - &v {version: 1.0.0, urls: [a], digest: d}\n  demo:\n  - *v\n",
		"a line of a value":          "entries:\n  demo:\n  - description: |\n      entries:\n      - x\n       \n    note: \"a\n  demo: b\n\n  - c\"\n    version: 1.0.0\n    urls: [a]\n    digest: d\n",
		"quoted keys":                "\"entries\":\n  \"demo\":\n  - \"version\": '1.0.0'\n    urls: ['a']\n    digest: \"d\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Index([]byte(text))
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff([]render.Entry{{Version: "1.0.0", URL: "a", Digest: "d"}}, got.Charts["demo"]); diff != "" {
				t.Error(diff)
			}
		})
	}

	// Texts that somebody forgot to quote.
	got, err := Index([]byte("entries:\n  demo:\n  - {version: 1.5, digest: 12, urls: [2]}\n"))
	if want := (render.Entry{Version: "1.5", URL: "2", Digest: "12"}); err != nil || got.Charts["demo"][0] != want {
		t.Errorf("%v, %v", got, err)
	}

	for _, text := range []string{"", "null", "[]", "entries: x", "entries:\n- a\n", "entries:\n  demo: x\n", "entries:\n  demo:\n  - version: {}\n", "<html>", "a: [", `{"entries":[]}`} {
		var failure *render.Failure
		if _, err := Index([]byte(text)); !errors.As(err, &failure) || failure.Stage != render.StageLoad {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Parsed at once, this took 133 MiB beside the garbage.
func TestALargeIndex(t *testing.T) {
	foreigntest.Sequential(t)

	text := largeIndex(100, 110)
	before := foreigntest.LiveBytes()

	foreigntest.WantPeak(t, 32<<20, func() {
		begun := time.Now()

		read, err := Index(text)
		if err != nil {
			t.Fatal(err)
		}

		if got := len(read.Charts["chart-99"]); got != 110 || len(read.Charts) != 100 {
			t.Errorf("%d charts, %d versions of one", len(read.Charts), got)
		}

		// What the cache is told is what the index takes.
		if took := foreigntest.LiveBytes() - before; float64(read.Bytes) < 0.8*float64(took) || float64(read.Bytes) > 1.3*float64(took) {
			t.Errorf("costs %d bytes, and took %d", read.Bytes, took)
		}

		t.Logf("%d MiB in %s", len(text)>>20, time.Since(begun))
		runtime.KeepAlive(read)
	})

	runtime.KeepAlive(text)
}

// hostileIndexes are indexes that would take hundreds of MiB, and what is said about them.
func hostileIndexes() map[string]struct {
	text []byte
	want string
} {
	list := func(before, element string, bytes int, after string) []byte {
		return []byte(before + strings.Repeat(element, bytes/len(element)) + after)
	}

	return map[string]struct {
		text []byte
		want string
	}{
		"empty lists in JSON":    {list(`{"entries":{"a":[`, "[],", 4<<20, `[]]}}`), "no chart index"},
		"empty lists elsewhere":  {list(`{"entries":{},"a":[`, "[],", 4<<20, `[]]}`), ""},
		"empty versions in JSON": {list(`{"entries":{"a":[`, "{},", 4<<20, `{}]}}`), ""},
		"many values in JSON":    {list(`{"entries":{"a":[`, "{},", 13<<20, `{}]}}`), "has more than 4000000 values"},
		"empty lists":            {list("entries:\n  a:\n", "  - []\n", 2<<20, ""), "no chart index"},
		"empty versions":         {list("entries:\n  a:\n", "  - {}\n", 2<<20, ""), ""},
		"a list on one line":     {list("entries:\n  a: [", "[],", 1<<20-64, "]\n"), "has more than 100000 values"},
		"a long line":            {list("entries:\n  a: [", "[],", 8<<20, "]\n"), "has more than 1048576 bytes"},
		"in flow style":          {list("entries: {a: [", "[],", 4<<20, "]}\n"), "not written as helm repo index does"},
		"charts":                 {list("entries:\n", "  a:\n", 2<<20, ""), ""},
		"a header of its own":    {list("entries:\n  a: !!seq\n", "\n", 512<<10, strings.Repeat("  -\n", 200_000)), "has more than 1048576 bytes"},
		"aliases":                {[]byte("entries:\n  a:\n  - &a " + strings.Repeat("x", 30<<10) + "\n" + strings.Repeat("  - *a\n", 2000)), "grows to more than 1048576 bytes"},
		"URLs":                   {list("entries:\n  a:\n  - version: 1.0.0\n    urls: [", "'',", 256<<10, "]\n"), ""},
		"deep":                   {list(`{"entries":{"a":[`, "[", 9000, strings.Repeat("]", 9001)+"}}"), "is nested deeper than 64 levels"},
		"what would be kept":     {keepers(600_000), "lists more versions of charts than fit into 32 MiB"},
	}
}

// keepers is an index of so many versions that consist of a number only.
func keepers(count int) []byte {
	text := bytes.NewBufferString(`{"entries":{"a":[{}`)
	for i := range count {
		fmt.Fprintf(text, `,{"version":"%d"}`, i)
	}

	text.WriteString("]}}")

	return text.Bytes()
}

func TestHostileIndexes(t *testing.T) {
	foreigntest.Sequential(t)

	for name, test := range hostileIndexes() {
		t.Run(name, func(t *testing.T) {
			foreigntest.WantPeak(t, 128<<20, func() {
				_, err := Index(test.text)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			})
		})
	}
}

func FuzzIndex(f *testing.F) {
	for _, test := range hostileIndexes() {
		if len(test.text) < 128<<10 {
			f.Add(test.text)
		}
	}

	f.Add(largeIndex(2, 3))
	f.Add([]byte(`{"entries":{"demo":[{"version":"1.0.0","urls":["a"],"digest":"d"}]}}`))
	f.Add([]byte("entries:\n  demo:\n  - note: \"a\n  demo: b\n\n  - c\"\n    version: 1.0.0\n"))
	f.Add([]byte("entries:\n  other: &o\n  - &v {version: 1.0.0, urls: [a]}\n  demo:\n  - *v\n"))

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 128<<10 {
			return
		}

		foreigntest.WantAllocated(t, 128<<20, func() {
			read, err := Index(text)
			if err != nil {
				return
			}

			if _, err := json.Marshal(read.Charts); err != nil {
				t.Error(err)
			}
		})
	})
}
