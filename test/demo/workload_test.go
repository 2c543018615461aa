package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

func TestAwaitEndsWithTheStartOrTheContext(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()

	broken := errors.New("no port left")
	started, under := make(chan struct{}), make(chan struct{})
	close(started)

	for name, test := range map[string]struct {
		ctx  context.Context
		w    workload
		want error
	}{
		"it runs":           {t.Context(), workload{started: started}, nil},
		"it did not start":  {t.Context(), workload{started: started, err: broken}, broken},
		"it is interrupted": {interrupted, workload{started: under}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.w.await(test.ctx); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// A start that failed leaves nothing to stop, and its error was told where it was waited for.
func TestStopWithoutACluster(t *testing.T) {
	started := make(chan struct{})
	close(started)

	w := workload{started: started, err: errors.New("no port left")}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}

// The written release is the example with the address of the running repository and nothing else changed.
func TestWriteRelease(t *testing.T) {
	dir, err := examples()
	if err != nil {
		t.Fatal(err)
	}

	d := &demo{stack: &env.Stack{Hub: &env.Hub{Dir: t.TempDir()}}, dir: dir, charts: startCharts()}
	defer d.charts.Close()

	path, err := d.writeRelease()
	if err != nil {
		t.Fatal(err)
	}

	if want := filepath.Join(d.stack.Dir, "helm-release.yaml"); path != want {
		t.Errorf("written to %s, want %s", path, want)
	}

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var written struct {
		Spec struct {
			ReleaseName string
			Chart       struct{ Repository, Chart, Version string }
		}
	}
	if err := yaml.Unmarshal(data, &written); err != nil {
		t.Fatal(err)
	}

	if written.Spec.ReleaseName != "podinfo" || written.Spec.Chart.Repository != d.charts.URL() ||
		written.Spec.Chart.Chart != "podinfo" || written.Spec.Chart.Version != "6.9.2" {
		t.Errorf("written: %+v", written)
	}
}

func TestWriteReleaseWithoutAChart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, releaseExample), []byte("kind: OmniHelmRelease\nspec: {chart: podinfo}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	d := &demo{stack: &env.Stack{Hub: &env.Hub{Dir: t.TempDir()}}, dir: dir, charts: startCharts()}
	defer d.charts.Close()

	if _, err := d.writeRelease(); err == nil || err.Error() != "helm-release.yaml has no spec.chart" {
		t.Errorf("got %v", err)
	}
}
