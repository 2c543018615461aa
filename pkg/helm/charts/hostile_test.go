package charts_test

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

func TestAServerThatHangs(t *testing.T) {
	repository := startRepository(t)
	repository.Handle("/index.yaml", func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })

	_, err := fetch(newFetcher(charts.Options{Timeout: 200 * time.Millisecond}), charts.Source{Repository: repository.URL(), Chart: "demo"})
	wantReason(t, err, charts.Timeout, "did not answer in time")
}

// A host that hangs in the middle of its answers leaves room for others.
func TestAHostThatHangsStarvesNobody(t *testing.T) {
	slow, quick := startRepository(t), startRepository(t)
	large := chartserver.ConfigMapChart("demo", "1.0.0")
	noise := make([]byte, 2<<20)

	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}

	large.Files["noise"] = string(noise)
	quick.Add(large)

	reached := make(chan string, 10)

	for _, path := range []string{"/a.tgz", "/b.tgz", "/index.yaml"} {
		slow.Handle(path, func(w http.ResponseWriter, request *http.Request) {
			_, _ = w.Write(noise)
			reached <- path
			<-request.Context().Done()
		})
	}

	f := newFetcher(charts.Options{ParallelDownloads: 2})
	ctx, cancel := context.WithCancel(t.Context())

	var pending sync.WaitGroup

	for i := range 3 {
		pending.Go(func() {
			_, _ = f.Resolve(ctx, charts.Source{Repository: slow.URL(), Chart: "demo", Credentials: charts.Credentials{Username: strconv.Itoa(i)}})
		})
	}

	<-reached

	if _, err := fetch(f, charts.Source{Repository: quick.URL(), Chart: "demo"}); err != nil {
		t.Error(err)
	}

	if got := len(reached); got != 0 {
		t.Errorf("%d more downloads from the host that hangs, want half of the places", got)
	}

	cancel()
	pending.Wait()
}

func TestAServerThatSendsAGigabyte(t *testing.T) {
	for _, row := range []struct {
		path      string
		announced bool
	}{{"/demo-1.0.0.tgz", true}, {"/demo-1.0.0.tgz", false}, {"/index.yaml", true}, {"/index.yaml", false}} {
		repository := startRepository(t)
		repository.AddEntry("demo", "1.0.0", "demo-1.0.0.tgz", strings.Repeat("0", 64))

		sent := make(chan int64, 1)
		repository.Handle(row.path, func(w http.ResponseWriter, _ *http.Request) {
			if row.announced {
				w.Header().Set("Content-Length", "1073741824")
			}

			n, _ := io.Copy(w, io.LimitReader(zeros{}, 1<<30))
			sent <- n
		})

		before := allocated()

		_, err := fetch(newFetcher(charts.Options{MaxArchiveBytes: 1 << 20, MaxIndexBytes: 1 << 20}), charts.Source{Repository: repository.URL(), Chart: "demo"})
		wantReason(t, err, charts.TooLarge, "limit of 1 MiB")

		if n := allocated() - before; n > 16<<20 {
			t.Errorf("the refusal took %d bytes of memory", n)
		}

		if n := <-sent; n > 64<<20 {
			t.Errorf("%d bytes went over the wire", n)
		}
	}
}

// allocated is all that this process has ever taken from the heap, in bytes.
func allocated() uint64 {
	var stats runtime.MemStats

	runtime.ReadMemStats(&stats)

	return stats.TotalAlloc
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// bombs are archives that take more than 4 MiB when they are unpacked, and less than 16 MiB.
func bombs() map[string]chartserver.Chart {
	within := func(name string, inner chartserver.Chart) chartserver.Chart {
		return chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{name: string(inner.Pack())}}
	}
	half := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"half": strings.Repeat("0", foreigntest.Load(3<<20))}}
	bomb := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"big": strings.Repeat("0", foreigntest.Load(8<<20))}}
	inside := within("charts/inner.tgz", bomb)

	return map[string]chartserver.Chart{
		"plain": bomb, "inside a subchart": inside, "two levels down": within("charts/middle.tgz", inside),
		"inside a subchart of a directory": within("charts/middle/charts/inner.tgz", bomb),
		"two halves":                       {Name: "demo", Version: "1.0.0", Files: map[string]string{"charts/a.tgz": string(half.Pack()), "charts/b.tgz": string(half.Pack())}},
		"under a name with a dot":          within("charts/inner.tgz/.", bomb),
	}
}

func TestAZipBomb(t *testing.T) {
	served := map[string]func(*testing.T, chartserver.Chart) charts.Source{
		"index with digests": func(t *testing.T, chart chartserver.Chart) charts.Source {
			t.Helper()

			repository := startRepository(t)
			repository.Add(chart)

			return charts.Source{Repository: repository.URL(), Chart: "demo"}
		},
		"index without digests": func(t *testing.T, chart chartserver.Chart) charts.Source {
			t.Helper()

			repository := startRepository(t)
			repository.Add(chart)
			repository.WithoutDigests()

			return charts.Source{Repository: repository.URL(), Chart: "demo"}
		},
		"registry": func(t *testing.T, chart chartserver.Chart) charts.Source {
			t.Helper()

			registry := startRegistry(t)
			registry.Push("demo", chart, nil)

			return charts.Source{Chart: registry.URL("demo"), CA: registry.CA()}
		},
	}

	for place, serve := range served {
		for name, bomb := range bombs() {
			t.Run(place+"/"+name, func(t *testing.T) {
				source := serve(t, bomb)
				small := newFetcher(charts.Options{MaxUnpackedBytes: int64(foreigntest.Load(4 << 20))})

				// What was refused once must not come out of a cache.
				for range 2 {
					_, err := fetch(small, source)
					wantReason(t, err, charts.TooLarge, "unpacked")
				}

				if _, err := fetch(newFetcher(charts.Options{MaxUnpackedBytes: int64(foreigntest.Load(16 << 20))}), source); err != nil {
					t.Errorf("with a higher limit: %v", err)
				}
			})
		}
	}
}

func TestABrokenChart(t *testing.T) {
	for name, data := range map[string][]byte{
		"no archive":    []byte("hello"),
		"cut short":     chartserver.ConfigMapChart("demo", "1.0.0").Pack()[:200],
		"no Chart.yaml": chartserver.Chart{Name: "demo", Files: map[string]string{"Chart.yaml": "version: 1.0.0\n"}}.Pack(),
		"a library": chartserver.Chart{Name: "demo", Files: map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ntype: library\n",
		}}.Pack(),
	} {
		t.Run(name, func(t *testing.T) {
			repository := startRepository(t)
			repository.AddFile("demo.tgz", data)
			repository.AddEntry("demo", "1.0.0", "demo.tgz", "")

			archive, err := fetch(newFetcher(charts.Options{}), charts.Source{Repository: repository.URL(), Chart: "demo"})
			if err == nil {
				_, err = load(archive)
			}

			wantReason(t, err, charts.Invalid)
		})
	}
}
