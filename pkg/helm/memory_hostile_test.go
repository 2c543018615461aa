package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// printer is a chart that prints a ConfigMap of so many values.
func printer(values int) chartserver.Chart {
	return chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{
		"templates/all.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx:\n{{ range until %d }}- a\n{{ end }}", values),
	}}
}

// hang is an action that has its chart rendered and parsed by Helm, and then holds it until it is told to end.
func hang(ctx context.Context, t *testing.T, c *Client, chart chartserver.Chart, hold func()) error {
	t.Helper()

	memory := newMemoryShare(c.target.Tenant, false)
	defer memory.giveBack()

	return memory.do(ctx, func() error {
		x, err := c.open(ctx, values.Values{}, memory)
		if err != nil {
			return err
		}

		x.request, x.hard, x.soft = Request{Chart: packed{chart}}, ctx, ctx

		prerendered, err := c.prepare(x, render.Release{Revision: 1}, false)
		if err != nil {
			return err
		}

		config := action.NewConfiguration()
		config.CustomTemplateFuncs = x.config.CustomTemplateFuncs

		made := dryRun(t, config, prerendered, nil)

		hold()

		if !strings.Contains(made.Manifest, "ConfigMap") {
			t.Error("the manifest is not that of the chart")
		}

		return nil
	}, func() error { return nil })
}

// Eight releases of four namespaces print as much as one may, at the same time, and hold it. What they hold together
// is bounded, and a small one of another namespace, and of the same one, does not wait for them.
func TestManyLargeChartsAtOnce(t *testing.T) {
	pool := render.New(render.Options{Workers: 2, Timeout: 5 * time.Minute})
	t.Cleanup(pool.Close)

	config := newFakeCluster(t).config()
	clientOf := func(tenant string) *Client {
		return New(Target{Config: config, Name: "demo", Namespace: "apps", Renderers: pool, Tenant: tenant}, logr.Discard(), time.Second)
	}

	large := printer(foreigntest.Load(400_000))
	free := occupied(t, totalBytes)
	begun, end := make(chan struct{}, 8), make(chan struct{})

	foreigntest.WantPeak(t, 448<<20, func() {
		var all sync.WaitGroup

		for i := range 8 {
			all.Go(func() {
				if err := hang(t.Context(), t, clientOf(fmt.Sprint("hostile-", i%4)), large, func() { begun <- struct{}{}; <-end }); err != nil {
					t.Error(err)
				}
			})
		}

		<-begun

		for _, tenant := range []string{"other", "hostile-0"} {
			if err := hang(t.Context(), t, clientOf(tenant), printer(10), func() {}); err != nil {
				t.Error(err)
			}
		}

		// Who gives up while there is no memory says what it has waited for.
		impatient, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)

		if err := hang(impatient, t, clientOf("impatient"), large, func() { t.Error("there was memory") }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}

		close(end)
		all.Wait()
	})

	free()
	wantNothingHeld(t)
}
