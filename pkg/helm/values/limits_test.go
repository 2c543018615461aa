package values

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// Each of these took hundreds of MiB, or would without end.
func TestHostileValues(t *testing.T) {
	foreigntest.Sequential(t)

	half := Layer{From: "before", Text: append([]byte("a: "), bytes.Repeat([]byte("x"), MaxBytes/2-100)...)}
	list := []byte("a: [" + strings.Repeat("1,", maxNodes*2/3) + "1]")

	for name, test := range map[string]struct {
		layers []Layer
		want   string
	}{
		"aliases of a long value": {[]Layer{{From: "x", Text: foreigntest.Aliased(30, 2000)}}, "x: grows to more than 4194304 bytes"},
		"in a later document":     {[]Layer{{From: "x", Text: append([]byte("a: 1\n---\n"), foreigntest.Aliased(30, 2000)...)}}, "x: grows to more than 4194304 bytes"},
		"aliases of aliases":      {[]Layer{{From: "x", Text: foreigntest.Doubled(17)}}, "x: has more than 100000 values"},
		"many values":             {[]Layer{{From: "x", Text: bytes.Repeat([]byte("- a\n"), 120_000)}}, "x: has more than 100000 values"},
		"many values in JSON":     {[]Layer{{From: "x", Text: []byte(`{"a":[` + strings.Repeat("{},", 200_000) + `{}]}`)}}, "x: has more than 100000 values"},
		"many documents":          {[]Layer{{From: "x", Text: bytes.Repeat([]byte("---\n"), 110_000)}}, "x: has more than 100000 values"},
		"deep":                    {[]Layer{{From: "x", Text: []byte(`{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`)}}, "deeper than 100 levels"},
		"a long text together":    {[]Layer{half, half, half}, "with the values before it, it has more than 4194304 bytes"},
		"a long value together":   {[]Layer{half, half, {From: "x", Text: half.Text, TargetPath: "b"}}, "x: with the values before it, it has more than 4194304 bytes"},
		"many values together":    {[]Layer{{From: "x", Text: list}, {From: "y", Text: list}}, "y: with the values before it, it has more than 100000 values"},
		"a long value":            {[]Layer{{From: "x", Text: make([]byte, MaxBytes+1), TargetPath: "b"}}, "x: has more than 4194304 bytes"},
		"a deep path":             {[]Layer{{From: "x", Text: []byte("v"), TargetPath: strings.Repeat("a.", 125) + "a"}}, "x: targetPath has more than 99 names"},
	} {
		t.Run(name, func(t *testing.T) {
			foreigntest.WantAllocated(t, 160<<20, func() {
				if _, err := Merge(t.Context(), test.layers); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			})
		})
	}
}

func TestAliasesInValues(t *testing.T) {
	foreigntest.Sequential(t)

	values, err := Merge(t.Context(), []Layer{
		text("x", "base: &base {cpu: 1, memory: 1Gi}\nweb:\n  <<: *base\n  cpu: 2\nall: [*base, *base]\n---\nlater: &l [1]\nagain: *l\n"),
		{From: "y", Text: foreigntest.Aliased(30, 100)},
	})
	if err != nil {
		t.Fatal(err)
	}

	// The digest of the same values without an alias.
	plain, err := Merge(t.Context(), []Layer{
		text("x", "base: {cpu: 1, memory: 1Gi}\nweb: {memory: 1Gi, cpu: 2}\nall: [{cpu: 1, memory: 1Gi}, {cpu: 1, memory: 1Gi}]\nlater: [1]\nagain: [1]\n"),
		{From: "a", Text: bytes.Repeat([]byte("x"), 30<<10), TargetPath: "a"},
		text("b", "b: ["+strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 30<<10)+",", 100), ",")+"]"),
	})
	if err != nil || plain.Digest() != values.Digest() {
		t.Errorf("%s and %s, %v", values.Digest(), plain.Digest(), err)
	}
}

// A controller that stops says nothing about the values.
func TestMergeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := Merge(ctx, []Layer{text("x", "a: 1")}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzValues(f *testing.F) {
	for _, seed := range [][]byte{
		[]byte("a: 1.10\nb: [yes, ~, 0x10]\n---\nc: {d: e}\n"), []byte(`{"a":123456789012345678901234567890,"b":1e400}`), foreigntest.Aliased(30, 2000), foreigntest.Doubled(17),
		[]byte("a: &a [*a]"), []byte("? {a: b}\n: c\n"), []byte("a: !!binary aGVsbG8=\n<<: [{b: 1}, {c: 2}]\n"), bytes.Repeat([]byte("---\n"), 10_000),
	} {
		f.Add(seed, "")
		f.Add(seed, `a.b\.c`)
	}

	f.Fuzz(func(t *testing.T, data []byte, path string) {
		if len(data) > 64<<10 {
			return
		}

		foreigntest.WantAllocated(t, 192<<20, func() {
			values, err := Merge(t.Context(), []Layer{{From: "x", Text: data, TargetPath: path, Secret: true}, {From: "y", Text: data}})
			if err != nil {
				return
			}

			again, err := Merge(t.Context(), []Layer{{From: "x", Text: data, TargetPath: path}, {From: "y", Text: data}})
			if err != nil || again.Digest() != values.Digest() {
				t.Errorf("digests %s and %s, %v", values.Digest(), again.Digest(), err)
			}
		})
	})
}
