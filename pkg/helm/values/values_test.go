package values

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func text(from, text string) Layer { return Layer{From: from, Text: []byte(text)} }

func TestMerge(t *testing.T) {
	for _, test := range []struct {
		name   string
		layers []Layer
		want   map[string]any
	}{
		{name: "nothing", want: map[string]any{}},
		{name: "empty text", layers: []Layer{text("a", ""), text("b", "# nothing\n"), text("c", "null")}, want: map[string]any{}},
		{
			name:   "later layers win, objects are merged",
			layers: []Layer{text("a", "x: {a: 1, b: [1, 2]}\nk: text"), text("b", `{"x":{"b":[3],"c":null},"k":{"z":true}}`)},
			want:   map[string]any{"x": map[string]any{"a": int64(1), "b": []any{int64(3)}, "c": nil}, "k": map[string]any{"z": true}},
		},
		{
			name:   "numbers in YAML",
			layers: []Layer{text("a", "a: 9007199254740993\nb: \"1.0\"\nc: 1048576\nd: 1.5\ne: -9223372036854775808\nf: 18446744073709551615")},
			want: map[string]any{
				"a": int64(9007199254740993), "b": "1.0", "c": int64(1048576), "d": 1.5, "e": int64(-9223372036854775808),
				"f": json.Number("18446744073709551615"),
			},
		},
		{
			name:   "numbers in JSON",
			layers: []Layer{text("a", `{"a":9007199254740993,"b":"1.0","c":123456789012345678901234567890,"d":1e3}`)},
			want: map[string]any{
				"a": int64(9007199254740993), "b": "1.0", "c": json.Number("123456789012345678901234567890"), "d": 1000.0,
			},
		},
		{
			name:   "numbers that become others, as in Helm",
			layers: []Layer{text("a", "a: 1.10\nb: 123456789012345678901234567890"), text("b", `{"c":1.10,"d":9007199254740993.0,"e":1e400}`)},
			want:   map[string]any{"a": 1.1, "b": 1.2345678901234568e+29, "c": 1.1, "d": 9007199254740992.0, "e": json.Number("1e400")},
		},
		{
			name:   "target paths",
			layers: []Layer{text("a", "db: {user: u}"), {From: "b", Text: []byte("0123\n"), TargetPath: "db.password"}, {From: "c", Text: []byte("v"), TargetPath: `a.b\.c/d`}},
			want:   map[string]any{"db": map[string]any{"user": "u", "password": "0123\n"}, "a": map[string]any{"b.c/d": "v"}},
		},
		{
			name:   "several documents",
			layers: []Layer{text("a", "a: 1\n---\nb: 2\n---\na: 3\n")},
			want:   map[string]any{"a": int64(3), "b": int64(2)},
		},
		{name: "a target path replaces what is in its way", layers: []Layer{text("a", "x: 1"), {From: "b", Text: []byte("v"), TargetPath: "x.y"}},
			want: map[string]any{"x": map[string]any{"y": "v"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			values, err := Merge(t.Context(), test.layers)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, values.Tree()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, path, want string }{
		{name: "a list", text: "- canary", want: "must be an object"},
		{name: "a text", text: "canary", want: "must be an object"},
		{name: "broken YAML", text: "a: [canary", want: "neither YAML nor JSON"},
		{name: "no UTF-8", text: "canary \xff", path: "a", want: "not UTF-8"},
		{name: "no UTF-8 in JSON", text: "{\"a\":\"canary \xff\"}", want: "not UTF-8"},
		{name: "empty name", text: "canary", path: "a..b", want: "empty name"},
		{name: "list index", text: "canary", path: "a[0]", want: "leads into a list"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Merge(t.Context(), []Layer{{From: `Secret "s", key "k"`, Text: []byte(test.text), TargetPath: test.path, Secret: true}})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), `Secret "s", key "k": `) {
				t.Fatalf("got %v", err)
			}

			if strings.Contains(err.Error(), "canary") {
				t.Errorf("%v holds the value", err)
			}
		})
	}
}

func TestDigestIsOfTheContent(t *testing.T) {
	digest := func(texts ...string) string {
		layers := make([]Layer, 0, len(texts))
		for _, one := range texts {
			layers = append(layers, text("x", one))
		}

		values, err := Merge(t.Context(), layers)
		if err != nil {
			t.Fatal(err)
		}

		return values.Digest()
	}

	if digest("a: 1\nb: {c: x}") != digest(`{ "b": {"c": "x"}, "a": 1 }`) || digest("a: 1", "b: {c: x}") != digest("a: 1\nb: {c: x}") {
		t.Error("equal values have different digests")
	}

	if digest("a: 9007199254740993") == digest("a: 9007199254740992") || digest(`a: "1"`) == digest("a: 1") || digest("a:") == digest("") {
		t.Error("different values have one digest")
	}

	if digest() != "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" {
		t.Error(digest())
	}
}

func TestTreeIsACopy(t *testing.T) {
	values, err := Merge(t.Context(), []Layer{text("a", "a: {b: [{c: 1}]}")})
	if err != nil {
		t.Fatal(err)
	}

	values.Tree()["a"].(map[string]any)["b"].([]any)[0].(map[string]any)["c"] = "changed"

	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": int64(1)}}}}, values.Tree()); diff != "" {
		t.Error(diff)
	}
}

func TestRedact(t *testing.T) {
	values, err := Merge(t.Context(), []Layer{
		text("inline", "visible: plain-text"),
		{From: "s", Text: []byte("password: canary-one\npin: 48151623\nquoted: 'can\"ar\\\\y<4>'\nlist: [canary-two]\nshort: ab\npem: |\n  canary-line-1\n  canary-line-2\n"), Secret: true},
		{From: "s", Text: []byte("canary-three\n"), TargetPath: "token", Secret: true},
	})
	if err != nil {
		t.Fatal(err)
	}

	for given, want := range map[string]string{
		"plain-text stays, ab too":          "plain-text stays, ab too",
		"at '/password': 'canary-one' bad":  "at '/password': '[removed]' bad",
		"canary-two\ncanary-line-2":         "[removed]",
		"token canary-three.":               "token [removed].",
		"the pin 48151623 is wrong":         "the pin [removed] is wrong",
		`Invalid value: "can\"ar\\\\y<4>"`:  `Invalid value: "[removed]"`,
		`{"a":"can\"ar\\\\y\u003c4\u003e"}`: `{"a":"[removed]"}`,
		"b64 Y2FuYXJ5LW9uZQ== x":            "b64 [removed]== x",
	} {
		if got := values.Redact(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}
