package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// watched is an object of generation 2 with a condition Ready.
func watched(name, status string, observed int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "generation": int64(2)},
		"status": map[string]any{"observedGeneration": observed, "conditions": []any{
			map[string]any{"type": "Released", "status": "True"},
			map[string]any{"type": "Ready", "status": status},
		}},
	}}
}

func TestIsReady(t *testing.T) {
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"ready":          {watched("a", "True", 2), true},
		"not ready":      {watched("a", "False", 2), false},
		"of an old spec": {watched("a", "True", 1), false},
		"no status":      {&unstructured.Unstructured{Object: map[string]any{}}, false},
	} {
		if got := isReady(test.object); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReadinessNotesTheFirstTime(t *testing.T) {
	r := readiness{since: map[string]time.Time{}}
	r.see(watched("a", "True", 2))
	r.see(watched("b", "False", 2))

	all, ready, first := r.state()
	if all != 2 || ready != 1 || first.IsZero() {
		t.Errorf("%d exist, %d ready since %s", all, ready, first)
	}

	r.see(watched("a", "True", 2))

	if _, _, again := r.state(); !again.Equal(first) {
		t.Errorf("seen again, it is ready since %s and not %s", again, first)
	}

	r.see(watched("a", "False", 2))
	r.forget(cache.DeletedFinalStateUnknown{Key: "space/b"})

	if all, ready, _ := r.state(); all != 1 || ready != 0 {
		t.Errorf("%d exist, %d ready", all, ready)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := r.waitFor(ctx, 1, "ours"); err == nil || !strings.Contains(err.Error(), "1 exist, 0 are ready") {
		t.Error(err)
	}

	r.forget(watched("a", "False", 2))

	if _, err := r.waitFor(t.Context(), 0, "ours"); err != nil {
		t.Error(err)
	}
}
