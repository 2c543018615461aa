package helm

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// pad writes a small chart with much noise behind the end of the tar file, which nobody reads: when it is rendered, it is
// a small chart. Each seed makes another archive.
func pad(to io.Writer, seed uint64) error {
	chart := chartserver.Chart{Name: "demo", Version: fmt.Sprintf("1.0.%d", seed), Files: map[string]string{
		"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n",
	}}

	plain, err := gzip.NewReader(bytes.NewReader(chart.Pack()))
	if err != nil {
		return err
	}

	zipped, err := gzip.NewWriterLevel(to, gzip.NoCompression)
	if err != nil {
		return err
	}

	noise := rand.NewChaCha8([32]byte{byte(seed)})
	_, err = io.Copy(zipped, io.MultiReader(plain, io.LimitReader(noise, int64(foreigntest.Load(12<<20)))))

	return errors.Join(err, zipped.Close())
}

// padded is a repository of so many versions of the chart demo, which it makes when they are asked for.
func padded(t *testing.T, versions uint64) *chartserver.Repository {
	t.Helper()

	repository := chartserver.StartRepository()
	t.Cleanup(repository.Close)

	for seed := range versions {
		digest, name := sha256.New(), fmt.Sprintf("demo-%d.tgz", seed)
		if err := pad(digest, seed); err != nil {
			t.Fatal(err)
		}

		repository.AddEntry("demo", fmt.Sprintf("1.0.%d", seed), name, hex.EncodeToString(digest.Sum(nil)))
		repository.Handle("/"+name, func(w http.ResponseWriter, _ *http.Request) { _ = pad(w, seed) })
	}

	return repository
}

// gone is a chart whose archive cannot be had any more.
type gone struct{ packed }

var errGone = errors.New("the repository does not answer")

// Archive implements Chart.
func (gone) Archive(context.Context) ([]byte, error) { return nil, errGone }

// What is said of an archive that is gone is what its source says.
func TestAnArchiveThatIsGone(t *testing.T) {
	c := New(Target{Config: newFakeCluster(t).config(), Name: "demo", Namespace: "apps", Renderers: render.New(render.Options{})}, logr.Discard(), time.Second)

	err := c.Run(t.Context(), Request{Decision: Decision{Action: ActionInstall}, Observed: &Observed{}, Chart: gone{}, Settings: Settings{Timeout: time.Minute}})
	if !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}

	archiveMemory.wantEmpty(t)
}

// install installs one of the versions, as a release of its own, in one of four namespaces.
func install(ctx context.Context, fetcher *charts.Fetcher, repository string, target Target, version int) error {
	source := charts.Source{Repository: repository, Chart: "demo", Version: fmt.Sprintf("1.0.%d", version)}

	resolved, err := fetcher.Resolve(ctx, source)
	if err != nil {
		return err
	}

	archive, err := fetcher.Open(ctx, source, resolved)
	if err != nil {
		return err
	}

	target.Name, target.Tenant = fmt.Sprint("demo-", version), fmt.Sprint(version%4)

	return New(target, logr.Discard(), time.Second).Run(ctx, Request{
		Decision: Decision{Action: ActionInstall}, Observed: &Observed{}, Chart: archive, Settings: Settings{Timeout: 10 * time.Minute},
	})
}

// Many actions on charts that are small but for their archives hang in a hook. They hold no archive, whether the cache
// has it or not.
func TestArchivesOfActionsThatHang(t *testing.T) {
	const actions = 16 // together 192 MiB of archives

	free := occupied(t, archiveMemory, totalArchiveBytes)
	repository := padded(t, actions)

	pool := render.New(render.Options{Timeout: time.Minute})
	t.Cleanup(pool.Close)

	begun, end := make(chan struct{}, actions), make(chan struct{})
	cluster := newFakeCluster(t)
	cluster.configMaps = func(to http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost || request.Method == http.MethodPatch {
			begun <- struct{}{}
			<-end
		}

		refuse(to, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "hook"))
	}

	target := Target{Config: cluster.config(), Namespace: "apps", Renderers: pool, Validated: everyKind{}}
	fetcher := charts.New(charts.Options{Renderers: pool, CacheBytes: 1, Guard: dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})

	foreigntest.WantPeak(t, 160<<20, func() {
		var all sync.WaitGroup

		for i := range actions {
			all.Go(func() {
				var failure *Error
				if err := install(t.Context(), fetcher, repository.URL(), target, i); !errors.As(err, &failure) {
					t.Error(err)
				}

				select {
				case begun <- struct{}{}: // also if it never came to the hook
				default:
				}
			})
		}

		for range actions {
			<-begun
		}

		close(end)
		all.Wait()
	})

	free()
	archiveMemory.wantEmpty(t)
}
