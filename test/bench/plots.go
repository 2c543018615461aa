package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"gonum.org/v1/plot"
)

// plotted is what a plot shows.
type plotted interface {
	// empty: nothing of it was measured.
	empty() bool
	draw() (*plot.Plot, error)
}

// bars are two ratios for each verb of part (a).
type bars struct {
	verbs        []string
	rates, costs []float64
}

func (b bars) empty() bool { return len(b.verbs) == 0 }

// curves are numbers over the size of the fleet.
type curves struct {
	title, x, y string
	all         []curve
}

func (c curves) empty() bool { return len(c.all) == 0 }

// curve has a point for each size at which the number was measured.
type curve struct {
	name   string
	points []point
	// color is an index of colors; dashed tells two curves of one color apart.
	color  int
	dashed bool
}

type point struct{ clusters, value float64 }

// plotFiles draws the results that are stored in files.
func plotFiles(dir string, files []string) error {
	var runs []*results

	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read results: %w", err)
		}

		r := &results{}
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("read results of %s: %w", file, err)
		}

		runs = append(runs, r)
	}

	return writePlots(dir, runs...)
}

// writePlots draws what runs measured into a directory. Of a figure that two of them have, that of the later run counts. A
// plot of which none has a figure is not written.
func writePlots(dir string, runs ...*results) error {
	files := map[string][]byte{}

	for name, shown := range map[string]plotted{
		"api.svg": verbBars(runs), "memory.svg": memoryCurves(runs), "growth.svg": growthCurves(runs), "latency.svg": latencyCurves(runs),
	} {
		if shown.empty() {
			continue
		}

		drawn, err := shown.draw()
		if err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}

		if files[name], err = encodeSVG(drawn); err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}
	}

	return writeFiles(dir, files)
}

// verbBars shows the verbs of which both ratios are known.
func verbBars(runs []*results) bars {
	var b bars

	for _, v := range verbs(fullSettings()) {
		rate, measured := lastFigure(runs, "a", rateName(v.name))
		cost, costed := lastFigure(runs, "a", costName(v.name))

		if measured && costed {
			b.verbs, b.rates, b.costs = append(b.verbs, v.name), append(b.rates, rate), append(b.costs, cost)
		}
	}

	return b
}

func memoryCurves(runs []*results) curves {
	c := curves{title: "Memory at rest, without files", x: "clusters", y: "anonymous memory, MiB"}

	for color, process := range ourPrograms() {
		c.add(curve{name: process, color: color}, runs, func(r *results, size int) (float64, bool) {
			return r.figure("f", anonymousName(memoryName(process, atRest(size, r.Settings.Settle))))
		})
	}

	return c
}

// growthCurves show what each of the new clusters took, at the size that the fleet had in the end.
func growthCurves(runs []*results) curves {
	c := curves{title: "What a new cluster takes", x: "clusters, the new ones included", y: "seconds per new cluster"}

	c.add(curve{name: "time until all are shown as synced", color: 3, dashed: true}, runs, func(r *results, size int) (float64, bool) {
		added, first := r.Settings.growth(size)
		seconds, ok := r.figure("d", growthName(added, first, allSynced))

		return seconds / float64(added), ok
	})

	for _, shown := range []struct {
		name      string
		color     int
		processes []string
	}{
		{"omni-apiserver", 0, []string{"omni-apiserver"}},
		{"omni-controller", 1, []string{"omni-controller"}},
		{"kube-apiserver and etcd", 2, []string{"kube-apiserver", "etcd"}},
		{"the load and the simulated Omni", grey, []string{"bench"}},
	} {
		c.add(curve{name: "processor time of " + shown.name, color: shown.color}, runs, func(r *results, size int) (float64, bool) {
			added, first := r.Settings.growth(size)
			seconds, ok := r.cpu(growthBusy(added, first), shown.processes)

			return seconds / float64(added), ok
		})
	}

	return c
}

func latencyCurves(runs []*results) curves {
	c := curves{title: "Latency between kubectl and Omni", x: "other clusters", y: "seconds"}

	for color, what := range []string{startsToOmni, returnsToOmni, changesToGet} {
		for _, percentile := range []string{"p50", "p99"} {
			shown := curve{name: what + ", " + percentile, color: color, dashed: percentile == "p99"}
			c.add(shown, runs, func(r *results, size int) (float64, bool) {
				return r.figure("b", latencyName(what, size, percentile))
			})
		}
	}

	return c
}

// add adds a curve with a point for each size of which a run has the value; of two runs the later counts. A curve without
// points is left out.
func (c *curves) add(shown curve, runs []*results, value func(r *results, size int) (float64, bool)) {
	for _, size := range fleetSizes(runs) {
		if v, ok := last(runs, func(r *results) (float64, bool) { return value(r, size) }); ok {
			shown.points = append(shown.points, point{float64(size), v})
		}
	}

	if len(shown.points) > 0 {
		c.all = append(c.all, shown)
	}
}

// fleetSizes are the numbers of clusters at which runs measure, in order.
func fleetSizes(runs []*results) []int {
	sizes := []int{0}
	for _, r := range runs {
		sizes = append(sizes, r.Settings.Few, r.Settings.Many)
	}

	slices.Sort(sizes)

	return slices.Compact(sizes)
}

// growth is how many clusters are added to how many, until the fleet has a size.
func (s settings) growth(size int) (added, first int) {
	if size > s.Few {
		first = s.Few
	}

	return size - first, first
}

// last returns what the last run that has a value says.
func last(runs []*results, value func(*results) (float64, bool)) (float64, bool) {
	for _, r := range slices.Backward(runs) {
		if v, ok := value(r); ok {
			return v, true
		}
	}

	return 0, false
}

func lastFigure(runs []*results, part, name string) (float64, bool) {
	return last(runs, func(r *results) (float64, bool) { return r.figure(part, name) })
}

// figure returns the value of a figure, if it was measured.
func (r *results) figure(part, name string) (float64, bool) {
	for _, f := range r.Figures {
		if f.Part == part && f.Name == name {
			return f.Value, true
		}
	}

	return 0, false
}

// cpu sums the processor time that processes took while something was measured.
func (r *results) cpu(what string, processes []string) (float64, bool) {
	for _, row := range r.Busy {
		if row.What != what {
			continue
		}

		sum := 0.0
		for _, process := range processes {
			sum += row.CPU[process]
		}

		return sum, true
	}

	return 0, false
}
