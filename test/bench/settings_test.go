package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseSettings(t *testing.T) {
	full, err := parseSettings(nil)
	if err != nil || full.Objects != 2000 || full.Clients != 32 || full.Many != 1000 || !full.HubFsync {
		t.Errorf("%+v, %v", full, err)
	}

	smoke, err := parseSettings([]string{"-objects=40", "-smoke"})
	if err != nil || smoke.Objects != 40 || smoke.Many != 15 || smoke.IdleWindow != 3*time.Second {
		t.Errorf("%+v, %v", smoke, err)
	}
}

func TestPlotTakesFiles(t *testing.T) {
	s, err := parseSettings([]string{"-plot", "docs", "a.json", "b.json"})
	if err != nil || s.plot != "docs" || !slices.Equal(s.inputs, []string{"a.json", "b.json"}) {
		t.Errorf("%q, %q, %v", s.plot, s.inputs, err)
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	for arg, want := range map[string]string{
		"-parts=xyz":            "-parts",
		"-clients=0":            "-clients",
		"-many=1":               "-many",
		"-idle=0s":              "-idle",
		"-profiles":             "-out",
		"-concurrent-lists=-1":  "-concurrent-lists",
		"-rounds=0":             "-rounds",
		"-settle=-1s":           "-settle",
		"-traffic=1ms":          "-traffic",
		"-samples=-1":           "-samples",
		"-objects=0":            "-objects",
		"-hub-fsync=perhaps":    "hub-fsync",
		"-releases=0":           "-releases",
		"-workloads=0":          "-workloads",
		"-release-rounds=0":     "-release-rounds",
		"-release-interval=29s": "-release-interval",
		"-release-window=0s":    "-release-window",
		"-plot=docs":            "-plot",
		"bench.json":            "-plot",
		"-nothing-of-this-name": "nothing-of-this-name",
	} {
		if _, err := parseSettings([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestDescribeSaysWhatIsUnfair(t *testing.T) {
	fair, unfair := fullSettings(), fullSettings()
	unfair.HubFsync = false

	if got := fair.describe(); strings.Contains(got, "unfair") || !strings.Contains(got, "32 clients, 2000 objects") {
		t.Error(got)
	}

	if got := unfair.describe(); !strings.Contains(got, "unfair") {
		t.Error(got)
	}
}

func TestRuns(t *testing.T) {
	s := settings{Parts: "bd"}
	if s.runs(partAPIs) || !s.runs(partLatency) || !s.runs(partGrowth) {
		t.Error(s.Parts)
	}
}

func TestReleasesArePartOfAFullRunOnly(t *testing.T) {
	full, smoke := fullSettings(), smokeSettings()
	if !full.runs(partReleases) || smoke.runs(partReleases) {
		t.Errorf("full: %s, smoke: %s", full.Parts, smoke.Parts)
	}

	if got := full.describe(); !strings.Contains(got, "100 releases on each side over 4 workload clusters, 2 rounds, checked again every 1m0s") ||
		!strings.Contains(got, "upstream Helm v4.2.4") {
		t.Error(got)
	}

	if got := smoke.describe(); strings.Contains(got, "Helm") {
		t.Error(got)
	}
}
