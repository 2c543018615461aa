package child

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// A HorizontalPodAutoscaler refuses a scale whose selector cannot be read.
func TestTheSelectorOfASetCanBeRead(t *testing.T) {
	long := strings.Repeat("x", 63)

	seen := map[string]bool{}

	for _, names := range [][2]string{{"edge", "general"}, {"edge", long}, {long, "general"}, {long, long}, {"_edge", "general"}, {"edge", "general-"}} {
		got := selectorOf(names[0], names[1])

		if _, err := labels.Parse(got); err != nil {
			t.Errorf("%v: %v", names, err)
		}

		if seen[got] {
			t.Errorf("%v: the selector of another set: %s", names, got)
		}

		seen[got] = true
	}

	if got, want := selectorOf("edge", "general"), "omni.sidero.dev/cluster=edge,omni.sidero.dev/machine-set=edge-general"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
