package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// results are what a run found. They grow while it runs and are written after each part, so that
// an interrupted run keeps what it has.
type results struct {
	Date     time.Time `json:"date"`
	Commit   string    `json:"commit,omitempty"`
	Settings settings  `json:"settings"`
	Figures  []figure  `json:"figures"`
	// Processor time by part and process, in seconds: what was busy.
	Busy []busy `json:"busy,omitempty"`

	lines []goLine
}

// busy is the processor time that processes took while something was measured.
type busy struct {
	What    string             `json:"what"`
	Seconds float64            `json:"seconds"`
	CPU     map[string]float64 `json:"cpu"`
}

func (r *results) add(figures ...figure) { r.Figures = append(r.Figures, figures...) }

// partTitles are the headings of the tables, in their order.
func partTitles() [][2]string {
	return [][2]string{
		{partAPIs, "Our API through kube-apiserver's aggregator, against a CRD with the same schema and objects"},
		{partLatency, "From kubectl apply to Omni, and from Omni to kubectl get"},
		{partIdle, "Requests to Omni while nothing happens"},
		{partGrowth, "New clusters, from the first apply to all synced"},
		{partRestarts, "Restarts"},
		{partMemory, "Resident memory, and its anonymous part: what is no content of files"},
		{partReleases, "Helm releases in workload clusters, next to Flux's helm-controller"},
		{partObjects, "The API server alone, with many objects"},
		{partRollout, "A rollout: clusters that wait for their turn, and those that take it"},
		{partStorm, "A storm: every cluster changes in Omni at once"},
		{partTraffic, "Lasting traffic: memory while every cluster changes in Omni all the time"},
	}
}

// markdown is the whole report.
func (r *results) markdown() string {
	var b strings.Builder

	fmt.Fprintf(&b, "# Benchmark of %s\n\n", r.Date.UTC().Format(time.DateOnly))

	if r.Commit != "" {
		fmt.Fprintf(&b, "Commit %s. ", r.Commit)
	}

	fmt.Fprintf(&b, "%s\n", r.Settings.describe())

	for _, title := range partTitles() {
		r.writePart(&b, title[0], title[1])
	}

	r.writeBusy(&b)

	return b.String()
}

func (r *results) writePart(b *strings.Builder, part, title string) {
	first := true

	for _, f := range r.Figures {
		if f.Part != part {
			continue
		}

		if first {
			fmt.Fprintf(b, "\n## (%s) %s\n\n| measured | value | unit | aim | met | note |\n|---|---|---|---|---|---|\n", part, title)

			first = false
		}

		aim := ""
		if f.Aim != nil {
			aim = f.Aim.String()
		}

		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", f.Name, number(f.Value), f.Unit, aim, f.verdict(), f.Note)
	}
}

func (r *results) writeBusy(b *strings.Builder) {
	if len(r.Busy) == 0 {
		return
	}

	fmt.Fprint(b, "\n## Processor time\n\nSeconds of processor time per process while something was measured; bench is the load and the simulated Omni.\n\n")
	fmt.Fprint(b, "| while | seconds |")

	for _, name := range processNames() {
		fmt.Fprintf(b, " %s |", name)
	}

	fmt.Fprintf(b, "\n|---|---|%s\n", strings.Repeat("---|", len(processNames())))

	for _, row := range r.Busy {
		fmt.Fprintf(b, "| %s | %s |", row.What, number(row.Seconds))

		for _, name := range processNames() {
			fmt.Fprintf(b, " %s |", number(row.CPU[name]))
		}

		fmt.Fprintln(b)
	}
}

// goBench is the report in the format of Go's benchmarks.
func (r *results) goBench() string {
	var b strings.Builder

	fmt.Fprintln(&b, "pkg: omni.texashpc.com/omni-cluster-operator/test/bench")

	for _, line := range r.lines {
		fmt.Fprintln(&b, line)
	}

	return b.String()
}

// write puts the report into a directory, three times: for people, programs and benchstat.
func (r *results) write(dir string) error {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}

	return writeFiles(dir, map[string][]byte{
		"bench.md": []byte(r.markdown()), "bench.json": append(encoded, '\n'), "bench.txt": []byte(r.goBench()),
	})
}

// writeFiles writes files into a directory, which is made if it is missing.
func writeFiles(dir string, files map[string][]byte) error {
	err := os.MkdirAll(dir, 0o755)

	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}

	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}

	return nil
}
