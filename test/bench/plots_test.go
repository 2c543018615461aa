package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
)

// measuredRun has every figure that a plot shows, with 5 and 15 clusters.
func measuredRun() *results {
	r := &results{Settings: settings{Few: 5, Many: 15, Settle: time.Second}}

	for _, name := range []string{"get", "list by all clients"} {
		r.add(figure{Part: partAPIs, Name: rateName(name), Value: 2}, figure{Part: partAPIs, Name: costName(name), Value: 0.5})
	}

	for _, size := range []int{0, 5, 15} {
		for _, process := range ourPrograms() {
			r.add(memoryFigures("f", memoryName(process, atRest(size, time.Second)), memory{resident: uint64(size+3) << 20, file: 1 << 20}, nil)...)
		}
	}

	for _, size := range []int{0, 5} {
		for _, what := range []string{startsToOmni, returnsToOmni, changesToGet} {
			r.add(figure{Part: partLatency, Name: latencyName(what, size, "p50"), Value: -0.01}, figure{Part: partLatency, Name: latencyName(what, size, "p99"), Value: 0.2})
		}
	}

	r.add(figure{Part: partGrowth, Name: growthName(5, 0, allSynced), Value: 10}, figure{Part: partGrowth, Name: growthName(10, 5, allSynced), Value: 30})
	r.Busy = []busy{
		{What: growthBusy(5, 0), CPU: map[string]float64{"omni-controller": 5, "kube-apiserver": 10, "etcd": 5}},
		{What: growthBusy(10, 5), CPU: map[string]float64{"omni-controller": 20, "kube-apiserver": 30, "etcd": 10}},
	}

	return r
}

// drawn are the files that writePlots makes.
func drawn(t *testing.T, runs ...*results) map[string][]byte {
	t.Helper()

	dir := t.TempDir()
	if err := writePlots(dir, runs...); err != nil {
		t.Fatal(err)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	files := map[string][]byte{}

	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}

	return files
}

func TestPlotsHaveTheirTexts(t *testing.T) {
	files := drawn(t, measuredRun())

	for name, texts := range map[string][]string{
		"api.svg":     {"ratio, ours/CRD", "requests per second (more is better)", "ratio 1: as the CRD", "by all clients", "2.00", "0.50"},
		"memory.svg":  {"clusters", "anonymous memory, MiB", "omni-apiserver", "omni-controller", "0", "5", "15"},
		"growth.svg":  {"seconds per new cluster", "time until all are shown as synced", "processor time of kube-apiserver and etcd"},
		"latency.svg": {"other clusters", "seconds", startsToOmni + ", p50", "Omni's status changes, to a get after that has it, p99", "0.20"},
	} {
		found := svgTexts(t, files[name])

		for _, want := range texts {
			if !slices.Contains(found, want) {
				t.Errorf("%s: no text %q in %q", name, want, found)
			}
		}
	}

	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
}

// svgTexts are the texts of a picture, which has to be valid XML.
func svgTexts(t *testing.T, svg []byte) []string {
	t.Helper()

	var texts []string

	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts
		} else if err != nil {
			t.Fatal(err)
		}

		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
}

func TestPlotsAreTheSameEachTime(t *testing.T) {
	if diff := cmp.Diff(drawn(t, measuredRun()), drawn(t, measuredRun())); diff != "" {
		t.Error(diff)
	}
}

func TestPlotsNeedNoFontOfTheReader(t *testing.T) {
	for name, svg := range drawn(t, measuredRun()) {
		if names, all := bytes.Count(svg, []byte("font-family:")), bytes.Count(svg, []byte(",sans-serif;")); names == 0 || names != all {
			t.Errorf("%s: %d of %d texts name the font that every reader has", name, all, names)
		}
	}
}

func TestWhatWasNotMeasuredHasNoPlot(t *testing.T) {
	if files := drawn(t, &results{Settings: smokeSettings()}); len(files) > 0 {
		t.Errorf("%d files", len(files))
	}

	onlyMemory := measuredRun()
	onlyMemory.Busy = nil
	onlyMemory.Figures = slices.DeleteFunc(onlyMemory.Figures, func(f figure) bool { return f.Part != "f" })

	if files := drawn(t, onlyMemory); len(files) != 1 || files["memory.svg"] == nil {
		t.Errorf("%d files", len(files))
	}
}

func TestGrowthIsPerNewCluster(t *testing.T) {
	got := map[string][]point{}
	for _, shown := range growthCurves([]*results{measuredRun()}).all {
		got[shown.name] = shown.points
	}

	want := map[string][]point{
		"time until all are shown as synced":                {{5, 2}, {15, 3}},
		"processor time of omni-apiserver":                  {{5, 0}, {15, 0}},
		"processor time of omni-controller":                 {{5, 1}, {15, 2}},
		"processor time of kube-apiserver and etcd":         {{5, 3}, {15, 4}},
		"processor time of the load and the simulated Omni": {{5, 0}, {15, 0}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(point{})); diff != "" {
		t.Error(diff)
	}
}

func TestLaterRunCounts(t *testing.T) {
	earlier, later := measuredRun(), &results{Settings: settings{Few: 7, Many: 15, Settle: time.Minute}}
	later.add(figure{Part: partAPIs, Name: rateName("get"), Value: 3})
	later.add(memoryFigures("f", memoryName("omni-controller", atRest(15, time.Minute)), memory{resident: 90 << 20}, nil)...)
	later.add(memoryFigures("f", memoryName("omni-controller", atRest(7, time.Minute)), memory{resident: 80 << 20}, nil)...)

	runs := []*results{earlier, later}
	if got := verbBars(runs); !slices.Equal(got.rates, []float64{3, 2}) || !slices.Equal(got.costs, []float64{0.5, 0.5}) {
		t.Errorf("%+v", got)
	}

	want := []point{{0, 2}, {5, 7}, {7, 80}, {15, 90}}
	if got := memoryCurves(runs).all[1]; !slices.Equal(got.points, want) {
		t.Errorf("%+v", got)
	}
}

func TestPlotFiles(t *testing.T) {
	dir := t.TempDir()
	if err := measuredRun().write(dir); err != nil {
		t.Fatal(err)
	}

	file, plots := filepath.Join(dir, "bench.json"), filepath.Join(dir, "plots")
	if err := plotFiles(plots, []string{file, file}); err != nil {
		t.Fatal(err)
	}

	svg, err := os.ReadFile(filepath.Join(plots, "memory.svg"))
	if err != nil || !bytes.Equal(svg, drawn(t, measuredRun())["memory.svg"]) {
		t.Errorf("not what the run itself draws, %v", err)
	}

	if err := plotFiles(plots, []string{filepath.Join(dir, "missing.json")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}

	if err := plotFiles(plots, []string{filepath.Join(dir, "bench.md")}); err == nil {
		t.Error("no error for a file that holds no results")
	}
}

func TestRoundTicks(t *testing.T) {
	for name, test := range map[string]struct {
		low, high float64
		want      []string
	}{
		"small":    {0, 0.199, []string{"0.00", "0.02", "0.04", "0.06", "0.08", "0.10", "0.12", "0.14", "0.16", "0.18"}},
		"middle":   {0, 3.9, []string{"0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5"}},
		"large":    {0, 620, []string{"0", "100", "200", "300", "400", "500", "600"}},
		"negative": {-0.01, 0.5, []string{"0.0", "0.1", "0.2", "0.3", "0.4", "0.5"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, tickLabels(roundTicks(test.low, test.high))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func tickLabels(ticks []plot.Tick) []string {
	var labels []string
	for _, tick := range ticks {
		labels = append(labels, tick.Label)
	}

	return labels
}
