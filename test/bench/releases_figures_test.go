package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sampleComparison() comparison {
	return comparison{
		what: "work", installers: map[string]string{sideOurs: "omni", sideFlux: "helm"},
		efforts: map[string][]effort{
			sideOurs: {
				{seconds: 4, cpu: map[string]float64{"omni": 2}, memory: map[string]memory{"omni": {resident: 50 << 20, file: 20 << 20, peak: 60 << 20}},
					requests: map[string]int{"get secrets": 3}, clusters: 1},
				{seconds: 6, cpu: map[string]float64{"omni": 2}, memory: map[string]memory{"omni": {resident: 50 << 20, file: 20 << 20, peak: 60 << 20}},
					requests: map[string]int{"get secrets": 5, "create secrets": 2}, downloads: 1, asked: 2, clusters: 1},
			},
			sideFlux: {
				{seconds: 10, cpu: map[string]float64{"helm": 3, "source": 1}, memory: map[string]memory{"helm": {resident: 100 << 20, peak: 110 << 20}, "source": {resident: 40 << 20}},
					requests: map[string]int{"get secrets": 20}, downloads: 4, asked: 5, revisions: 1, clusters: 2},
			},
		},
	}
}

// byName finds figures again.
func byName(figures []figure) map[string]figure {
	found := map[string]figure{}
	for _, f := range figures {
		found[f.Name] = f
	}

	return found
}

func TestInstallFigures(t *testing.T) {
	got := byName(sampleComparison().installFigures())

	for name, want := range map[string]figure{
		"work: until all are Ready, ours":                     {Value: 5, Unit: "s"},
		"work: until all are Ready, Flux":                     {Value: 10, Unit: "s"},
		"work: until all are Ready, ours/Flux":                {Value: 0.5, Unit: "x", Aim: below(1)},
		"work: processor time, Flux":                          {Value: 4, Unit: "s", Note: "helm 3.00 s; source 1.00 s"},
		"work: processor time, ours/Flux":                     {Value: 0.5, Unit: "x", Aim: below(1)},
		"work: memory of the installing program, ours":        {Value: 50, Unit: "MiB", Note: "omni 50 MiB, of which 20 are files"},
		"work: memory of the installing program, ours/Flux":   {Value: 0.5, Unit: "x", Aim: below(1)},
		"work: its memory besides files, ours":                {Value: 30, Unit: "MiB"},
		"work: its largest memory so far, Flux":               {Value: 110, Unit: "MiB"},
		"work: processor time of the workload clusters, ours": {Value: 1, Unit: "s"},
		"work: requests to the workload clusters, ours":       {Value: 5, Unit: "requests", Note: "2 create secrets, 5 get secrets"},
		"work: chart downloads, Flux":                         {Value: 4, Unit: "downloads", Note: "5 requests to the repository"},
	} {
		want.Part, want.Name = "g", name
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestIdleFiguresAimAtZeroForOurSideOnly(t *testing.T) {
	got := byName(sampleComparison().idleFigures())

	for name, verdict := range map[string]string{
		"work: revisions made, ours":                        "yes",
		"work: revisions made, Flux":                        "",
		"work: writes to the workload clusters, ours":       "NO",
		"work: writes to the workload clusters, Flux":       "",
		"work: chart downloads, ours":                       "NO",
		"work: chart downloads, Flux":                       "",
		"work: requests to the workload clusters, ours":     "",
		"work: memory of the installing program, ours/Flux": "yes",
	} {
		if f, ok := got[name]; !ok || f.verdict() != verdict {
			t.Errorf("%s: %+v, verdict %q, want %q", name, f, f.verdict(), verdict)
		}
	}
}

func TestLinesOfReleases(t *testing.T) {
	lines := sampleComparison().lines("install", 2, 2)
	if len(lines) != 3 || lines[0].per != 2*time.Second || lines[2].name != "Releases/do=install/side=Flux/releases=2" {
		t.Fatalf("%+v", lines)
	}

	if idle := sampleComparison().lines("idle", 1, 2)[0]; idle.count != 1 || idle.per != 4*time.Second {
		t.Errorf("%+v", idle)
	}

	if got := lines[2].String(); !strings.Contains(got, "4 cpu-s") || !strings.Contains(got, "20 requests") || !strings.Contains(got, "1 revisions") {
		t.Error(got)
	}
}
