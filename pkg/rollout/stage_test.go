package rollout_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()

	if text == "" {
		return nil
	}

	parsed, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}

	return parsed
}

func TestOf(t *testing.T) {
	stages := []labels.Selector{selector(t, "tier=canary"), selector(t, "tier in (canary,stage)"), selector(t, "")}

	for tier, want := range map[string]int{"canary": 0, "stage": 1, "prod": 2, "": 2} {
		if got := rollout.StageOf(stages, labels.Set{"tier": tier}); got != want {
			t.Errorf("tier %q is in stage %d, want %d", tier, got, want)
		}
	}

	if got := rollout.StageOf(stages[:2], labels.Set{}); got != -1 {
		t.Errorf("a cluster that no stage takes is in %d", got)
	}
}

func TestShares(t *testing.T) {
	for _, test := range []struct {
		value              string
		clusters           int
		concurrent, needed int
	}{
		{"1", 0, 1, 1},
		{"3", 2, 3, 3},
		{"100", 1000, 100, 100},
		{"10%", 0, 1, 1},
		{"10%", 9, 1, 1},
		{"10%", 10, 1, 1},
		{"10%", 11, 1, 2},
		{"10%", 25, 2, 3},
		{"50%", 5, 2, 3},
		{"1%", 99, 1, 1},
		{"100%", 7, 7, 7},
		{"100%", 1000, 100, 1000},
	} {
		concurrent, err := rollout.ConcurrentOf(intstr.Parse(test.value), test.clusters)
		if err != nil || concurrent != test.concurrent {
			t.Errorf("%s of %d at work: %d (%v), want %d", test.value, test.clusters, concurrent, err, test.concurrent)
		}

		needed, err := rollout.NeededOf(intstr.Parse(test.value), test.clusters)
		if err != nil || needed != test.needed {
			t.Errorf("%s of %d needed: %d (%v), want %d", test.value, test.clusters, needed, err, test.needed)
		}
	}

	// A number in quotes is no percentage: 50 clusters are not half of them.
	for _, value := range []string{"50", "5 0%", "5x"} {
		if got, err := rollout.ConcurrentOf(intstr.FromString(value), 10); err == nil || !strings.Contains(err.Error(), "neither a number nor a percentage") {
			t.Errorf("%q at work: %d, %v", value, got, err)
		}
	}

	for _, value := range []string{"0", "-1", "101", "0%", "101%", "ten", "10 %", "%", "1.5%", ""} {
		if got, err := rollout.ConcurrentOf(intstr.Parse(value), 10); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%q at work: %d, %v", value, got, err)
		}

		if got, err := rollout.NeededOf(intstr.Parse(value), 10); err == nil {
			t.Errorf("%q needed: %d", value, got)
		}
	}
}
