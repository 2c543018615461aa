package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	now := map[string]any{"spec": map[string]any{
		"same": "a", "version": "v1", "gone": true, "list": []any{map[string]any{"name": "x", "size": int64(1)}}, "longer": []any{"a"},
	}}
	then := map[string]any{"spec": map[string]any{
		"same": "a", "version": "v2", "new": map[string]any{"a": "b"}, "list": []any{map[string]any{"name": "x", "size": int64(2)}}, "longer": []any{"a", "b"},
	}}

	var got [][3]string
	for _, change := range compare(now, then) {
		got = append(got, [3]string{change.Field, shown(change.Now), shown(change.Then)})
	}

	want := [][3]string{
		{"spec.gone", "true", ""}, {"spec.list[0].size", "1", "2"}, {"spec.longer", `["a"]`, `["a","b"]`}, {"spec.new", "", `{"a":"b"}`}, {"spec.version", "v1", "v2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
