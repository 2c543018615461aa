package charts_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// indexOf is an index of so many bytes, as helm repo index writes one, with chart demo 1.0.0 at its end.
func indexOf(size int) []byte {
	text := bytes.NewBufferString("apiVersion: v1\nentries:\n")

	for i := 0; text.Len() < size; i++ {
		if i%100 == 0 {
			fmt.Fprintf(text, "  chart-%d:\n", i/100)
		}

		fmt.Fprintf(text, "  - apiVersion: v2\n    created: \"2024-05-21T10:00:00.%09[1]dZ\"\n    description: %[2]s\n    digest: %064[1]d\n    keywords:\n    - one\n    - two\n"+
			"    maintainers:\n    - name: Someone\n      url: https://example.com/charts\n    name: chart\n    urls:\n    - https://charts.example.com/chart-%[1]d.tgz\n    version: %[1]d.0.0\n",
			i, strings.Repeat("words ", 80))
	}

	text.WriteString("  demo:\n  - name: demo\n    urls:\n    - demo-1.0.0.tgz\n    version: 1.0.0\n    digest: " + strings.Repeat("a", 64) + "\n")

	return text.Bytes()
}

func serve(r *chartserver.Repository, path string, text []byte) {
	r.Handle(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
}

// An index of the largest size that is accepted is read by a worker of the default size. Here it takes its text, and what is kept.
func TestTheLargestIndex(t *testing.T) {
	text := indexOf(foreigntest.Load(charts.DefaultMaxIndexBytes - 1<<20))

	repository := startRepository(t)
	serve(repository, "/index.yaml", text)

	f := newFetcher(charts.Options{Renderers: newRenderers(t, render.Options{Timeout: 5 * time.Minute}), Timeout: 10 * time.Minute})

	// The text twice while it is read, once more while it is sent, what is kept of it, and garbage of a busy machine.
	foreigntest.WantPeak(t, 5*charts.DefaultMaxIndexBytes, func() {
		begun := time.Now()

		found, err := f.Resolve(t.Context(), charts.Source{Repository: repository.URL(), Chart: "demo"})
		if err != nil || found.Version != "1.0.0" {
			t.Errorf("%+v, %v", found, err)
		}

		t.Logf("%d MiB in %s", len(text)>>20, time.Since(begun))
	})
}

func newRenderers(t *testing.T, options render.Options) *render.Pool {
	t.Helper()

	options.Program = program
	pool := render.New(options)
	t.Cleanup(pool.Close)

	return pool
}

// What becomes of an index that takes too much is said with its name; the next one is read as if nothing had happened.
func TestAnIndexThatAWorkerDoesNotSurvive(t *testing.T) {
	value := strings.Repeat("x", 40<<20)

	for name, test := range map[string]struct {
		text   string
		pool   render.Options
		reason charts.Reason
		words  []string
	}{
		"memory": {text: `{"entries":{"demo":[{"version":"1.0.0","description":"` + value + `"}]}}`, pool: render.Options{Memory: render.MinMemory},
			reason: charts.Refused, words: []string{"/index.yaml: the index: reading it takes more than 64 MiB of memory", "--render-memory"}},
		"time": {text: string(indexOf(32 << 20)), pool: render.Options{Timeout: 20 * time.Millisecond},
			reason: charts.Refused, words: []string{"/index.yaml: the index: reading it did not end within 20ms", "--render-timeout"}},
		"values": {text: `{"entries":{"a":[` + strings.Repeat("{},", 5_000_000) + `{}]}}`,
			reason: charts.TooLarge, words: []string{"/index.yaml: the index has more than 4000000 values"}},
		"no process": {text: "entries: {}", pool: render.Options{Program: "/does/not/exist"},
			reason: charts.Unavailable, words: []string{"/index.yaml: the index", "cannot be rendered now"}},
	} {
		t.Run(name, func(t *testing.T) {
			repository, other := startRepository(t), startRepository(t)
			serve(repository, "/index.yaml", []byte(test.text))
			other.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

			if test.pool.Program == "" {
				test.pool.Program = program
			}

			pool := render.New(test.pool)
			t.Cleanup(pool.Close)

			f := newFetcher(charts.Options{Renderers: pool})

			foreigntest.WantPeak(t, 192<<20, func() {
				_, err := f.Resolve(t.Context(), charts.Source{Repository: repository.URL(), Chart: "demo"})
				wantReason(t, err, test.reason, test.words...)
			})

			if name != "memory" && name != "values" {
				return
			}

			if _, err := fetch(f, charts.Source{Repository: other.URL(), Chart: "demo"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Many releases of a repository need one reading of its index, and while that is fresh no worker at all.
func TestAnIndexIsReadOnce(t *testing.T) {
	repository := startRepository(t)
	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))
	repository.Add(chartserver.ConfigMapChart("other", "1.0.0"))

	link := linkToProgram(t)
	pool := render.New(render.Options{Program: link, Idle: time.Nanosecond})
	t.Cleanup(pool.Close)

	f := newFetcher(charts.Options{Renderers: pool})

	for range 2 {
		var all sync.WaitGroup

		for i := range 100 {
			all.Go(func() {
				chart := []string{"demo", "other"}[i%2]
				if _, err := f.Resolve(t.Context(), charts.Source{Repository: repository.URL(), Chart: chart, Tenant: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			})
		}

		all.Wait()

		// From now on there is no worker to be had.
		_ = os.Remove(link)
	}

	if got := repository.Requests(); len(got) != 1 {
		t.Errorf("%d requests: %v", len(got), got)
	}
}

// linkToProgram is a path of what workers run that a test may remove.
func linkToProgram(t *testing.T) string {
	t.Helper()

	target := program
	if target == "" {
		var err error
		if target, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}

	link := filepath.Join(t.TempDir(), "program")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}

	return link
}

// A provenance file that a worker does not survive is named.
func TestAProvenanceFileThatAWorkerDoesNotSurvive(t *testing.T) {
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	signer := chartserver.NewSigner("signer")

	registry := startRegistry(t)
	registry.Push("demo", chart, signer.Sign(chart))

	source := charts.Source{Chart: registry.URL("demo"), CA: registry.CA(), Keyring: signer.PublicKey()}

	for _, test := range []struct {
		pool   render.Options
		reason charts.Reason
		words  []string
	}{
		{pool: render.Options{Timeout: time.Nanosecond, Program: program}, reason: charts.Refused,
			words: []string{"chart demo 1.0.0: its provenance file: checking it did not end within 1ns", "--render-timeout"}},
		{pool: render.Options{Program: "/does/not/exist"}, reason: charts.Unavailable, words: []string{"chart demo 1.0.0: its provenance file"}},
	} {
		pool := render.New(test.pool)
		t.Cleanup(pool.Close)

		foreigntest.WantAllocated(t, 32<<20, func() {
			_, err := newFetcher(charts.Options{Renderers: pool}).Resolve(t.Context(), source)
			wantReason(t, err, test.reason, test.words...)
		})

	}
}
