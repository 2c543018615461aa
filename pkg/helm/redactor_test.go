package helm

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// An action on an older revision meets older values, which may have come from a Secret.
func TestOlderValuesAreKeptOutOfMessages(t *testing.T) {
	merged, err := values.Merge(t.Context(), []values.Layer{
		{From: "s", Text: []byte("password: new-canary"), Secret: true},
		{From: "inline", Text: []byte("image: nginx-web")},
	})
	if err != nil {
		t.Fatal(err)
	}

	d := &redactor{values: merged}

	if got, want := d.redact("old-canary new-canary nginx-web"), "old-canary [removed] nginx-web"; got != want {
		t.Errorf("before: %q, want %q", got, want)
	}

	d.add(map[string]any{"password": "old-canary", "image": "nginx-web", "nested": map[string]any{"list": []any{"old-canary-2"}}})

	if got, want := d.redact("old-canary-2 old-canary new-canary nginx-web"), "[removed] [removed] [removed] nginx-web"; got != want {
		t.Errorf("after: %q, want %q", got, want)
	}

	if got := merged.Redact("old-canary"); got != "old-canary" {
		t.Errorf("the values themselves have changed: %q", got)
	}
}
