package omnicluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestMemory(t *testing.T) {
	var kept memory[string]

	name, other := types.NamespacedName{Namespace: "team", Name: "demo"}, types.NamespacedName{Namespace: "team", Name: "other"}

	if kept.forget(name); kept.of(name) != "" {
		t.Errorf("a new memory keeps %q", kept.of(name))
	}

	kept.keep(name, "first")
	kept.keep(name, "second")
	kept.keep(other, "other")

	if kept.of(name) != "second" || kept.of(other) != "other" {
		t.Errorf("got %q and %q", kept.of(name), kept.of(other))
	}

	if kept.forget(name); kept.of(name) != "" || len(kept.entries) != 1 {
		t.Errorf("kept after forget: %v", kept.entries)
	}
}
