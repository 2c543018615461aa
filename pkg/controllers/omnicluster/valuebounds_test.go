package omnicluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// readAll reads a text through the bounds, so many times.
func readAll(ctx context.Context, text string, times int) (got string, err error) {
	read := boundedValues(ctx, func(v1alpha1.ValueSource) (string, error) { return text, nil })

	for range times {
		if got, err = read(v1alpha1.ValueSource{}); err != nil {
			return got, err
		}
	}

	return got, nil
}

func aliased(kib, count int) string {
	return "machine: {sysctls: {a: &a " + strings.Repeat("x", kib<<10) + "}}\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", count), ",") + "]\n"
}

func TestHostileReferences(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		times int
		want  string
	}{
		"aliases of a long value":             {aliased(30, 2000), 1, "grows to more than 4194304 bytes"},
		"aliases of aliases":                  {string(foreigntest.Doubled(30)), 1, "has more than 100000 values"},
		"in a later document":                 {"a: b\n---\n" + aliased(30, 2000), 1, "grows to more than 4194304 bytes"},
		"many values":                         {"[" + strings.Repeat("a,", 200_000) + "a]", 1, "has more than 100000 values"},
		"deep":                                {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), 1, "is nested deeper than 128 levels"},
		"a large text again and again":        {strings.Repeat("x", 1<<20), 1000, "with the texts before it, it has more than 8388608 bytes"},
		"aliases that the parser gives up at": {"a: &a [b]\nc: *a\nd: [\n", 1, "is neither YAML nor JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			foreigntest.WantAllocated(t, 128<<20, func() {
				if _, err := readAll(t.Context(), test.text, test.times); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			})
		})
	}
}

// What is within the bounds arrives byte for byte; what is no YAML is for Omni's rules.
func TestReferencesWithinTheBounds(t *testing.T) {
	for _, text := range []string{"", "# nothing", aliased(1, 100), string(foreigntest.Doubled(8)), "a: [", "not: yaml: at all", "\xff"} {
		if got, err := readAll(t.Context(), text, 3); err != nil || got != text {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// A stop of the controller says nothing about a text.
func TestReferencesEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := readAll(ctx, "a: b", 1)

	var unreadable *UnreadableValueError
	if err != nil && !errors.As(err, &unreadable) {
		t.Error(err)
	}
}

func FuzzReference(f *testing.F) {
	for _, text := range []string{"machine: {network: {hostname: a}}", aliased(30, 2000), string(foreigntest.Doubled(30)), "a: &a [*a]", "- op: add\n  path: /a\n  value: b\n", "---\n---\n"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}

		foreigntest.WantAllocated(t, 128<<20, func() {
			got, err := readAll(t.Context(), text, 1)
			if err == nil && got != text {
				t.Error("changed")
			}

			_ = template.Hash([]byte(got))
		})
	})
}
