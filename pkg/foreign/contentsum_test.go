package foreign_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// sameContent compares two texts; false if the content of one of them has no sum.
func sameContent(ctx context.Context, left, right string) bool {
	one, err := foreign.ContentSum(ctx, []byte(left), limits)
	other, otherErr := foreign.ContentSum(ctx, []byte(right), limits)

	return err == nil && otherErr == nil && one == other
}

func TestContentSumIgnoresFormat(t *testing.T) {
	for name, texts := range map[string][2]string{
		"indentation":          {"a:\n    b:\n        c: 1\n", "a:\n  b:\n    c: 1\n"},
		"lists":                {"a:\n    - b: 1\n      c: 2\n", "a:\n- {b: 1, c: 2}\n"},
		"order of keys":        {"b: 1\na: 2\n", "a: 2\nb: 1\n"},
		"comments":             {"# x\na: 1 # y\n", "a: 1\n"},
		"JSON":                 {`{"a": [true, null, 1.10, "b"]}`, "a: [true, null, 1.10, b]\n"},
		"quotes":               {`a: "b"`, `a: 'b'`},
		"quotes of an address": {`a: 10.0.0.0/8`, `a: "10.0.0.0/8"`},
		"quotes of a time":     {`a: 30s`, `a: "30s"`},
		"quotes of an amount":  {`a: 2Gi`, `a: "2Gi"`},
		"quotes of a version":  {`a: 1.13.0`, `a: "1.13.0"`},
		"quotes around a key":  {`"a": 1`, `a: 1`},
		"a block of text":      {"a: |\n    b\n    c\n", `a: "b\nc\n"`},
		"separators":           {"---\na: 1\n---\nb: 1\n", "a: 1\n---\nb: 1"},
		"comments alone":       {"# x\n---\na: 1\n---\n# y\n", "a: 1\n"},
		"comments alone first": {"--- \n# x\n---\na: 1\n", "a: 1\n"},
		"nothing first":        {"---\n---\na: 1\n", "a: 1\n"},
		"nothing":              {"", "# x\n"},
		"spellings of null":    {"a: ~\nb:\n", "a: null\nb: Null"},
	} {
		if !sameContent(t.Context(), texts[0], texts[1]) {
			t.Errorf("%s: %q and %q differ", name, texts[0], texts[1])
		}
	}
}

// What a reader could take for something else counts as different, and so does what some readers take for the same.
func TestContentSumSeesContent(t *testing.T) {
	for name, texts := range map[string][2]string{
		"a value":             {"a: 1", "a: 2"},
		"a key":               {"a: 1", "b: 1"},
		"a level":             {"a: {b: {}, c: 1}", "a: {b: {c: 1}}"},
		"no value":            {"a: {}", "a: {b: null}"},
		"empty":               {"a: {}", "a: []"},
		"order of a list":     {"a: [1, 2]", "a: [2, 1]"},
		"order of documents":  {"a: 1\n---\nb: 1", "b: 1\n---\na: 1"},
		"another document":    {"a: 1", "a: 1\n---\na: 1"},
		"an empty document":   {"a: 1", "a: 1\n---\n{}"},
		"a document of null":  {"a: 1", "a: 1\n---\nnull"},
		"lists in lists":      {"- - 1\n  - 2", "- - 1\n- - 2"},
		"texts that join":     {"ab: c", "a: bc"},
		"large integers":      {"a: 9007199254740993", "a: 9007199254740992"},
		"larger integers":     {"a: 123456789012345678901234567890", "a: 123456789012345678901234567891"},
		"a fraction":          {"a: 1", "a: 1.0"},
		"digits":              {"a: 1.1", "a: 1.10"},
		"an exponent":         {"a: 1000", "a: 1e3"},
		"octal":               {"a: 0o17", "a: 15"},
		"older octal":         {"a: 017", "a: 15"},
		"hexadecimal":         {"a: 0xf", "a: 15"},
		"underscores":         {"a: 1_000", "a: 1000"},
		"number and text":     {"a: 1", `a: "1"`},
		"truth and text":      {"a: true", `a: "true"`},
		"older truth":         {"a: yes", `a: "yes"`},
		"older truth twice":   {"a: yes", "a: true"},
		"its short form":      {"a: y", `a: "y"`},
		"a key and text":      {"yes: a", `"yes": a`},
		"a string by its tag": {"a: ! 12", "a: 12"},
		"null and text":       {"a: null", `a: "null"`},
		"truth in capitals":   {"a: True", "a: true"},
		"no text":             {"a:", `a: ""`},
		"a date":              {"a: 2026-08-01", `a: "2026-08-01"`},
		"white space":         {`a: "b "`, "a: b"},
		"end of a block":      {"a: |\n  b\n", "a: |-\n  b\n"},
		"comment in a block":  {"a: |\n  # b\n", "a: |\n  # c\n"},
	} {
		if sameContent(t.Context(), texts[0], texts[1]) {
			t.Errorf("%s: %q and %q are the same", name, texts[0], texts[1])
		}
	}
}

// Such texts have no sum: they are not even the same as themselves.
func TestContentSumOfTextsThatReadersReadDifferently(t *testing.T) {
	for name, text := range map[string]string{
		"a key twice":            "a: 1\na: 1",
		"a key twice, quoted":    "a: 1\n\"a\": 1",
		"a key that is a number": "1: a",
		"a key that is a list":   "[a]: a",
		"an alias":               "a: &a 1\nb: *a",
		"a merge":                "a: &a {b: 1}\nc: {<<: *a}",
		"a merge of a map":       "a: {<<: {b: 1}}",
		"a quoted merge":         `a: {"<<": {b: 1}}`,
		"a tag":                  "a: !!str 1",
		"a tag of its own":       "a: !b {}",
		"another end":            "a: 1\n...\nb: 1",
		"a document in a line":   "a: 1\n--- {b: 1}",
		"no YAML":                "a: [",
	} {
		if _, err := foreign.ContentSum(t.Context(), []byte(text), limits); err == nil {
			t.Errorf("%s: %q has a sum", name, text)
		}
	}
}

func TestContentSumIsBounded(t *testing.T) {
	large := foreign.Limits{Bytes: 8 << 20, Depth: 128, Nodes: 200_000, Expanded: 16 << 20}

	for name, text := range map[string]string{
		"a list":          "a: [" + strings.Repeat("a,", 2<<20) + "]",
		"aliases":         string(foreigntest.Aliased(60, 20_000)),
		"doubled aliases": string(foreigntest.Doubled(40)),
		"deep":            "a: " + strings.Repeat("[", 100_000),
		"JSON":            "[" + strings.Repeat("{},", 1<<20) + "{}]",
		"long":            strings.Repeat("# ", 5<<20),
	} {
		t.Run(name, func(t *testing.T) {
			foreigntest.WantPeak(t, 128<<20, func() {
				if _, err := foreign.ContentSum(t.Context(), []byte(text), large); err == nil {
					t.Error("it has a sum")
				}
			})
		})
	}
}

// Texts with the same sum are the same to the other reader, too.
func FuzzContentSum(f *testing.F) {
	for _, text := range []string{"a: 1\n---\nb: [yes, 1.10]", "{}", "a: \"b\"", "a: b", "a: 1:20", "? a\n: b", "a: |\n b", "a: ! yes", "%YAML 1.1\n---\na: b"} {
		f.Add(text, strings.ReplaceAll(text, " ", "  "))
		f.Add(text, text)
	}

	f.Fuzz(func(t *testing.T, left, right string) {
		if !sameContent(t.Context(), left, right) {
			return
		}

		// With a comment a text is no JSON, which Documents would return as it is.
		one, err := foreign.Documents(t.Context(), []byte("#\n"+left), limits)
		other, otherErr := foreign.Documents(t.Context(), []byte("#\n"+right), limits)

		if err != nil || otherErr != nil {
			return
		}

		if !bytes.Equal(present(one), present(other)) {
			t.Errorf("%q and %q", left, right)
		}
	})
}

// present joins the documents that are not empty.
func present(documents [][]byte) []byte {
	var found [][]byte

	for _, document := range documents {
		if string(document) != "null" {
			found = append(found, document)
		}
	}

	return bytes.Join(found, []byte("\n"))
}
