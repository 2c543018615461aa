package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The two sides of part (g), in the order in which they are reported.
const (
	sideOurs = "ours"
	sideFlux = "Flux"
)

// effort is what one side took to do something with all of its releases.
type effort struct {
	// seconds until it was done, or how long it was watched.
	seconds float64
	// cpu in seconds and memory by process; clusters is the processor time of the workload
	// clusters' kube-apiservers and etcds, which both sides use.
	cpu      map[string]float64
	memory   map[string]memory
	clusters float64
	// requests to the workload clusters, by what they are.
	requests map[string]int
	// downloads of charts, and requests to the chart repository, those included.
	downloads, asked int
	// revisions that Helm has more than before.
	revisions int
}

// totalCPU is the processor time of all programs of the side.
func (e effort) totalCPU() float64 {
	sum := 0.0
	for _, used := range e.cpu {
		sum += used
	}

	return sum
}

// medianOf is the median of a number over the rounds.
func medianOf(rounds []effort, number func(effort) float64) float64 {
	values := make([]float64, len(rounds))
	for i, round := range rounds {
		values[i] = number(round)
	}

	return median(values)
}

// comparison makes figures of both sides.
type comparison struct {
	what string
	// installers are the programs that correspond: omni-controller and helm-controller. Flux's
	// source-controller, which downloads charts, is counted besides.
	installers map[string]string
	efforts    map[string][]effort
}

// both are a figure for each side and, with a bound, the ratio ours/Flux.
func (c comparison) both(name, unit string, bound *aim, note func(effort) string, number func(side string) func(effort) float64) []figure {
	values := map[string]float64{}
	figures := []figure{}

	for _, side := range []string{sideOurs, sideFlux} {
		values[side] = medianOf(c.efforts[side], number(side))
		f := figure{Part: partReleases, Name: c.what + ": " + name + ", " + side, Value: values[side], Unit: unit}

		if rounds := c.efforts[side]; note != nil && len(rounds) > 0 {
			f.Note = note(rounds[len(rounds)-1])
		}

		figures = append(figures, f)
	}

	if bound != nil && values[sideFlux] > 0 {
		figures = append(figures, figure{Part: partReleases, Name: c.what + ": " + name + ", ours/Flux", Value: values[sideOurs] / values[sideFlux], Unit: "x", Aim: bound})
	}

	return figures
}

// same is a number that is read alike on both sides.
func same(number func(effort) float64) func(string) func(effort) float64 {
	return func(string) func(effort) float64 { return number }
}

// processFigures are processor time and memory, of the installing programs and of whole sides.
func (c comparison) processFigures() []figure {
	figures := c.both("processor time", "s", below(1), cpuNote, same(effort.totalCPU))
	figures = append(figures, c.both("memory of the installing program", "MiB", below(1), memoryNote, func(side string) func(effort) float64 {
		return func(e effort) float64 { return float64(e.memory[c.installers[side]].resident) / mebibyte }
	})...)

	figures = append(figures, c.both("its memory besides files", "MiB", nil, nil, func(side string) func(effort) float64 {
		return func(e effort) float64 { return float64(e.memory[c.installers[side]].anonymous()) / mebibyte }
	})...)

	return append(figures, c.both("its largest memory so far", "MiB", nil, nil, func(side string) func(effort) float64 {
		return func(e effort) float64 { return float64(e.memory[c.installers[side]].peak) / mebibyte }
	})...)
}

// requestFigures are the requests to the workload clusters.
func (c comparison) requestFigures() []figure {
	return c.both("requests to the workload clusters", "requests", nil, func(e effort) string { return list(e.requests) },
		same(func(e effort) float64 { return float64(total(e.requests)) }))
}

// installFigures are those of a first install.
func (c comparison) installFigures() []figure {
	figures := c.both("until all are Ready", "s", below(1), nil, same(func(e effort) float64 { return e.seconds }))
	figures = append(figures, c.processFigures()...)
	figures = append(figures, c.both("processor time of the workload clusters", "s", nil, nil, same(func(e effort) float64 { return e.clusters }))...)
	figures = append(figures, c.requestFigures()...)

	return append(figures, c.both("chart downloads", "downloads", nil, askedNote, same(func(e effort) float64 { return float64(e.downloads) }))...)
}

// idleFigures are those of releases with nothing to do. The aims of zero are about our side.
func (c comparison) idleFigures() []figure {
	figures := c.both("revisions made", "revisions", nil, nil, same(func(e effort) float64 { return float64(e.revisions) }))
	figures = append(figures, c.both("writes to the workload clusters", "writes", nil, nil, same(func(e effort) float64 { return float64(writesOf(e.requests)) }))...)
	figures = append(figures, c.both("chart downloads", "downloads", nil, askedNote, same(func(e effort) float64 { return float64(e.downloads) }))...)

	for i := 0; i < len(figures); i += 2 { // ours
		figures[i].Aim = exactly(0)
	}

	return append(append(figures, c.requestFigures()...), c.processFigures()...)
}

// lines are the results for benchstat, one for each round, of something that was done so often.
func (c comparison) lines(name string, times, releases int) []goLine {
	var lines []goLine

	for _, side := range []string{sideOurs, sideFlux} {
		for _, e := range c.efforts[side] {
			lines = append(lines, goLine{
				name: fmt.Sprintf("Releases/do=%s/side=%s/releases=%d", name, side, releases), count: times,
				per: time.Duration(e.seconds * float64(time.Second) / float64(times)),
				extra: []metric{
					{e.totalCPU(), "cpu-s"}, {float64(e.memory[c.installers[side]].resident), "resident-bytes"},
					{float64(total(e.requests)), "requests"}, {float64(e.downloads), "downloads"}, {float64(e.revisions), "revisions"},
				},
			})
		}
	}

	return lines
}

// cpuNote shows the parts of a side that has two programs.
func cpuNote(e effort) string {
	return perProcess(e, func(name string) string { return number(e.cpu[name]) + " s" })
}

func memoryNote(e effort) string {
	return perProcess(e, func(name string) string {
		return fmt.Sprintf("%d MiB, of which %d are files", e.memory[name].resident/mebibyte, e.memory[name].file/mebibyte)
	})
}

func askedNote(e effort) string { return fmt.Sprintf("%d requests to the repository", e.asked) }

// perProcess says something of each process, in the order of their names.
func perProcess(e effort, say func(name string) string) string {
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(e.memory)) {
		parts = append(parts, name+" "+say(name))
	}

	return strings.Join(parts, "; ")
}
