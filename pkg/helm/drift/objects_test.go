package drift

import (
	"slices"
	"testing"
)

func TestObjects(t *testing.T) {
	object := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }

	for name, test := range map[string]struct {
		text  string
		want  []string // names of the objects
		wrong bool
	}{
		"documents": {text: object("a") + "---\n# a comment\n---\n" + object("b"), want: []string{"a", "b"}},
		"a list": {
			text: "apiVersion: v1\nkind: List\nitems:\n- {kind: ConfigMap, metadata: {name: a}}\n- {kind: ConfigMap, metadata: {name: b}}\n",
			want: []string{"a", "b"},
		},
		"nothing":             {text: "# nothing\n"},
		"JSON, one after one": {text: `{"kind":"ConfigMap","metadata":{"name":"a"}}{"kind":"ConfigMap","metadata":{"name":"b"}}`, want: []string{"a", "b"}},
		"not readable":        {text: object("a") + "---\n{", wrong: true},
		"no object":           {text: "words\n", wrong: true},
	} {
		objects, err := ParseObjects([]byte(test.text))

		var names []string
		for _, one := range objects {
			names = append(names, one.GetName())
		}

		if !slices.Equal(names, test.want) || (err != nil) != test.wrong {
			t.Errorf("%s: %q, %v", name, names, err)
		}
	}
}
