package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAims(t *testing.T) {
	for name, test := range map[string]struct {
		aim     *aim
		value   float64
		verdict string
		text    string
	}{
		"above, met":        {above(0.9), 0.91, "yes", "> 0.900"},
		"above, at bound":   {above(0.9), 0.9, "NO", "> 0.900"},
		"below, met":        {below(200), 199, "yes", "< 200"},
		"below, missed":     {below(200), 200, "NO", "< 200"},
		"exactly, met":      {exactly(0), 0, "yes", "= 0"},
		"exactly, missed":   {exactly(0), 1, "NO", "= 0"},
		"no aim, no answer": {nil, 3, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (figure{Value: test.value, Aim: test.aim}).verdict(); got != test.verdict {
				t.Errorf("verdict %q, want %q", got, test.verdict)
			}

			if test.aim != nil && test.aim.String() != test.text {
				t.Errorf("text %q, want %q", test.aim, test.text)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for want, value := range map[string]float64{"0": 0, "0.123": 0.1234, "1.23": 1.234, "-12.3": -12.34, "123": 123.4, "12346": 12345.6} {
		if got := number(value); got != want {
			t.Errorf("%v: got %s, want %s", value, got, want)
		}
	}
}

func sampleResults() *results {
	r := &results{
		Date:     time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
		Commit:   "abc",
		Settings: settings{Clients: 4, Objects: 10, Rounds: 1},
		Busy:     []busy{{What: "create", Seconds: 2, CPU: map[string]float64{"kube-apiserver": 1.5}}},
		lines:    []goLine{{name: "API/get/side=ours", count: 10, per: 1500 * time.Nanosecond, extra: []metric{{666.5, "ops/s"}}}},
	}
	r.add(figure{Part: partMemory, Name: "memory", Value: 250, Unit: "MiB", Aim: below(200)},
		figure{Part: partAPIs, Name: "get, ratio", Value: 0.8, Unit: "x", Aim: above(0.7), Note: "note"})

	return r
}

func TestMarkdown(t *testing.T) {
	got := sampleResults().markdown()

	position := 0

	for _, want := range []string{
		"# Benchmark of 2026-11-21\n\nCommit abc. ",
		"## (a) Our API",
		"| get, ratio | 0.800 | x | > 0.700 | yes | note |",
		"## (f) Resident memory, and its anonymous part",
		"| memory | 250 | MiB | < 200 | NO |  |",
		"| create | 2.00 | 1.50 | 0 |",
	} {
		at := strings.Index(got[position:], want)
		if at < 0 {
			t.Fatalf("no %q after position %d in\n%s", want, position, got)
		}

		position += at
	}

	if strings.Contains(got, "## (b)") {
		t.Error("a part that was not measured has a table")
	}
}

// What was measured is in the report.
func TestEveryPartHasATitle(t *testing.T) {
	titles := ""
	for _, title := range partTitles() {
		titles += title[0]
	}

	if titles != allParts {
		t.Errorf("titles for %s, parts %s", titles, allParts)
	}
}

func TestGoBenchLines(t *testing.T) {
	want := "pkg: omni.texashpc.com/omni-cluster-operator/test/bench\n" +
		"BenchmarkAPI/get/side=ours\t      10\t        1500 ns/op\t       666.5 ops/s\n"
	if diff := cmp.Diff(want, sampleResults().goBench()); diff != "" {
		t.Error(diff)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := sampleResults().write(dir); err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}

	var back results
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}

	if len(back.Figures) != 2 || back.Figures[1].Aim == nil || !back.Figures[1].Aim.Above || back.Settings.Objects != 10 {
		t.Errorf("%+v", back)
	}

	for _, name := range []string{"bench.md", "bench.txt"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServersAreWhatAnswers(t *testing.T) {
	row := busy{CPU: map[string]float64{"kube-apiserver": 1, "etcd": 2, "omni-apiserver": 4, "omni-controller": 8, "bench": 16}}
	if got := row.servers(); got != 7 {
		t.Error(got)
	}
}
