package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMemoryFigures(t *testing.T) {
	held := memory{resident: 250 << 20, file: 100 << 20, peak: 300 << 20}
	want := []figure{
		{
			Part: partMemory, Name: "omni-apiserver with 15 clusters, after 2s of rest", Value: 250, Unit: "MiB", Aim: below(200),
			Note: "of which 100 MiB are files; peak so far 300 MiB",
		},
		{Part: partMemory, Name: "omni-apiserver with 15 clusters, after 2s of rest, anonymous", Value: 150, Unit: "MiB"},
	}

	if diff := cmp.Diff(want, memoryFigures("f", memoryName("omni-apiserver", atRest(15, 2*time.Second)), held, below(200))); diff != "" {
		t.Error(diff)
	}
}

func TestMemoryWithoutClustersHasNoRest(t *testing.T) {
	if got := memoryName("omni-controller", atRest(0, time.Minute)); got != "omni-controller with no clusters" {
		t.Error(got)
	}
}
