package foreign_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

var limits = foreign.Limits{Bytes: 1 << 20, Depth: 20, Nodes: 10_000, Expanded: 1 << 20}

// aliases is a list of one value of some KiB and many aliases of it.
func aliases(kib, count int) string { return string(foreigntest.Aliased(kib, count)) }

// laughs doubles what it becomes with each line.
func laughs(lines int) string { return string(foreigntest.Doubled(lines)) }

func TestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string // "" is within the limits
	}{
		"nothing":                     {"", ""},
		"a value":                     {"a: b", ""},
		"aliases":                     {aliases(1, 10), ""},
		"aliases of a long value":     {aliases(60, 1000), "grows to more than 1048576 bytes"},
		"aliases of aliases":          {laughs(40), "more than 10000 values"},
		"the same as a merge":         {"a: &a {b: 1}\nc:\n  <<: *a\n", ""},
		"aliases in later documents":  {"a: b\n---\n" + aliases(60, 1000), "grows to more than"},
		"documents together":          {strings.Repeat("a: ["+strings.Repeat("1,", 3000)+"]\n---\n", 4), "more than 10000 values"},
		"an alias in its own anchor":  {"a: &a [*a]", "contains itself"},
		"many values":                 {"[" + strings.Repeat("a,", 20_000) + "]", "more than 10000 values"},
		"many values in JSON":         {"[" + strings.Repeat("1,", 20_000) + "1]", "more than 10000 values"},
		"empty objects in JSON":       {"[" + strings.Repeat("{},", 20_000) + "{}]", "more than 10000 values"},
		"deep":                        {strings.Repeat("[", 30) + strings.Repeat("]", 30), "deeper than 20 levels"},
		"deep in YAML":                {"a: " + strings.Repeat("- ", 0) + strings.Repeat("[", 30) + strings.Repeat("]", 30), "deeper than 20 levels"},
		"deep by an alias":            {"a: &a " + strings.Repeat("[", 15) + strings.Repeat("]", 15) + "\nb: " + strings.Repeat("[", 15) + "*a" + strings.Repeat("]", 15), "deeper than 20 levels"},
		"long":                        {strings.Repeat("a", 1<<20+1), "more than 1048576 bytes"},
		"neither":                     {"a: [", "is neither YAML nor JSON"},
		"an anchor that is not there": {"a: *a", "is neither YAML nor JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			foreigntest.WantAllocated(t, 64<<20, func() {
				for reader, err := range readers(t.Context(), []byte(test.text)) {
					// The first document is all that counts there.
					if reader == "ToJSON" && strings.Contains(name, "documents") {
						continue
					}

					if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
						t.Errorf("%s: %v, want %q", reader, err, test.want)
					}
				}
			})
		})
	}
}

// A large text is not parsed to see that it has too many values; a few MiB of text with punctuation are.
func TestLargeTexts(t *testing.T) {
	large := foreign.Limits{Bytes: 32 << 20, Depth: 20, Nodes: 500_000, Expanded: 32 << 20}

	foreigntest.WantAllocated(t, 16<<20, func() {
		var exceeded *foreign.LimitError
		if err := foreign.Check(t.Context(), []byte("a: ["+strings.Repeat("a,", 2<<20)+"]"), large); !errors.As(err, &exceeded) || exceeded.What != foreign.Nodes {
			t.Error(err)
		}
	})

	dashboards := "a: |\n" + strings.Repeat(`  {"type": "panel", "title": "a title", "targets": [{"expr": "sum(rate(a[5m]))"}]},`+"\n", 48_000)
	if err := foreign.Check(t.Context(), []byte(dashboards), large); err != nil {
		t.Error(err)
	}
}

// readers are all ways to read a text, and what each says.
func readers(ctx context.Context, text []byte) map[string]error {
	_, converted := foreign.ToJSON(ctx, text, limits)
	_, documents := foreign.Documents(ctx, text, limits)

	return map[string]error{"Check": foreign.Check(ctx, text, limits), "ToJSON": converted, "Documents": documents}
}

func TestErrorsQuoteNothing(t *testing.T) {
	for _, text := range []string{"a: [hunter2", "hunter2: *hunter2", "{\"hunter2\"", "a: &hunter2 [*hunter2]", "hunter2:\n\thunter2"} {
		for reader, err := range readers(t.Context(), []byte(text)) {
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s of %q: %v", reader, text, err)
			}
		}
	}
}

func TestDocuments(t *testing.T) {
	got, err := foreign.Documents(t.Context(), []byte("a: &a 1\nb: *a\n---\n# nothing\n---\nc: [yes, 1.10]"), limits)
	if err != nil {
		t.Fatal(err)
	}

	want := []string{`{"a":1,"b":1}`, `null`, `{"c":[true,1.1]}`}
	if diff := cmp.Diff(want, strings.Split(string(bytes.Join(got, []byte("|"))), "|")); diff != "" {
		t.Error(diff)
	}
}

// What a text becomes counts, not what it is. A YAML document itself counts as a value.
func TestMeasure(t *testing.T) {
	for text, want := range map[string]foreign.Size{
		`{"a":["bc",1]}`:                  {Nodes: 5, Bytes: 4, Depth: 2},
		"a: [bc, 1]":                      {Nodes: 6, Bytes: 4, Depth: 2},
		"a: &a [bc, 1]\nd: *a\n---\ne: f": {Nodes: 14, Bytes: 10, Depth: 2},
	} {
		if got, err := foreign.Measure(t.Context(), []byte(text), limits); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestJSONStaysAsItIs(t *testing.T) {
	const text = `{"a": 123456789012345678901234567890, "b": 1.10}`

	got, err := foreign.ToJSON(t.Context(), []byte(text), limits)
	if err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
}

func TestUnmarshal(t *testing.T) {
	var into struct{ A []string }
	if err := foreign.Unmarshal(t.Context(), []byte("a: [b, c]"), limits, &into); err != nil || len(into.A) != 2 {
		t.Errorf("%v, %v", into, err)
	}

	err := foreign.Unmarshal(t.Context(), []byte("a: hunter2"), limits, &into)
	if !errors.Is(err, foreign.ErrSyntax) || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestNoAliases(t *testing.T) {
	without := limits
	without.NoAliases = true

	for text, want := range map[string]error{
		"a: &a 1\nb: *a":            foreign.ErrAlias,
		"a: &a 1":                   nil,
		"a: '*a & b'":               nil,
		"a: |\n  b: &b\n  c: *b\n":  nil,
		"a: 1\n---\n- &b 1\n- *b":   foreign.ErrAlias,
		"? &a 1\n: *a":              foreign.ErrAlias,
		`{"a": "&a", "b": "*a"}`:    nil,
		"a: &a {b: 1}\nc: {<<: *a}": foreign.ErrAlias,
		"a: &a [*a]":                foreign.ErrAlias,
		"a: &a [*a":                 foreign.ErrSyntax,
	} {
		if err := foreign.Check(t.Context(), []byte(text), without); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestGunzip(t *testing.T) {
	packed := &bytes.Buffer{}
	writer := gzip.NewWriter(packed)

	for range 64 {
		if _, err := writer.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}

	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}

	foreigntest.WantAllocated(t, 16<<20, func() {
		var exceeded *foreign.LimitError
		if _, err := foreign.Gunzip(packed.Bytes(), 1<<20); !errors.As(err, &exceeded) || exceeded.What != foreign.Inflated {
			t.Error(err)
		}
	})

	if got, err := foreign.Gunzip(packed.Bytes(), 64<<20); err != nil || len(got) != 64<<20 {
		t.Errorf("%d bytes, %v", len(got), err)
	}

	for _, damaged := range [][]byte{nil, []byte("text"), packed.Bytes()[:100]} {
		if _, err := foreign.Gunzip(damaged, 1<<20); !errors.Is(err, foreign.ErrSyntax) {
			t.Error(err)
		}
	}
}

// What is read at the same time takes the budget's memory, not that of all readers.
func TestBudget(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	release := foreign.TakeBudget(t.Context())
	defer release()

	for reader, err := range readers(ctx, []byte("a: b")) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", reader, err)
		}
	}

	if err := foreign.Check(ctx, []byte(`{"a":"b"}`), limits); err != nil {
		t.Errorf("JSON, which is not parsed: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"", "a: b", aliases(1, 100), laughs(40), "a: &a [*a]", "a: &a {b: 1}\n<<: [*a, *a]", `{"a":["b",{},[]]}`,
		"%YAML 1.1\n---\na: !!binary aGVsbG8=\n...\n---\n- ? {a: b}\n", "\xff\xfea\x00:\x00 \x00b\x00", "a: |\n  --- \n  b\n",
	} {
		f.Add([]byte(text))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			return
		}

		small := foreign.Limits{Bytes: 64 << 10, Depth: 50, Nodes: 5000, Expanded: 256 << 10}

		foreigntest.WantAllocated(t, 128<<20, func() {
			checked := foreign.Check(t.Context(), text, small)

			if _, err := foreign.ToJSON(t.Context(), text, small); checked == nil && err != nil && !errors.Is(err, foreign.ErrSyntax) {
				t.Errorf("within the limits, and then: %v", err)
			}

			_, _ = foreign.Documents(t.Context(), text, small)
		})
	})
}
