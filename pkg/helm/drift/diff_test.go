package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

// parsed is an object as a client reads it from a cluster.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()

	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}

	return object
}

func TestDiff(t *testing.T) {
	for _, test := range []struct {
		name, a, b string
		ignored    []string
		want       []string
	}{
		{name: "equal", a: `{"a":{"b":[1]}}`, b: `{"a":{"b":[1]}}`},
		{name: "changed, added, gone", a: `{"a":1,"b":2,"c":{"d":1}}`, b: `{"a":2,"c":{"e":1}}`, want: []string{"/a", "/b", "/c/d", "/c/e"}},
		{name: "in a list", a: `{"l":[{"x":1},{"x":2}]}`, b: `{"l":[{"x":1},{"x":3}]}`, want: []string{"/l/1/x"}},
		{name: "a longer list", a: `{"l":[1]}`, b: `{"l":[1,2]}`, want: []string{"/l"}},
		{name: "another type", a: `{"a":{"b":1}}`, b: `{"a":"text"}`, want: []string{"/a"}},
		{name: "names with slashes", a: `{"a/b~c":1}`, b: `{"a/b~c":2}`, want: []string{"/a~1b~0c"}},
		{name: "ignored, and below ignored", a: `{"a":1,"b":{"c":1},"d":1}`, b: `{"a":2,"b":{"c":2},"d":2}`, ignored: []string{"/a", "/b"}, want: []string{"/d"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := cmp.Diff(test.want, diff(parsed(t, test.a), parsed(t, test.b), test.ignored)); got != "" {
				t.Error(got)
			}
		})
	}
}

func TestCopyPath(t *testing.T) {
	for _, test := range []struct{ name, from, to, pointer, want string }{
		{"a value", `{"spec":{"replicas":5}}`, `{"spec":{"replicas":1,"x":2}}`, "/spec/replicas", `{"spec":{"replicas":5,"x":2}}`},
		{"nothing there", `{"spec":{}}`, `{"spec":{"replicas":1}}`, "/spec/replicas", `{"spec":{}}`},
		{"new for the target", `{"spec":{"replicas":5}}`, `{"spec":{}}`, "/spec/replicas", `{"spec":{"replicas":5}}`},
		{"in a list", `{"l":[{"x":1}]}`, `{"l":[{"x":2}]}`, "/l/0/x", `{"l":[{"x":1}]}`},
		{"an element", `{"l":[1]}`, `{"l":[2]}`, "/l/0", `{"l":[1]}`},
		{"leads nowhere", `{"l":[1]}`, `{"l":[2]}`, "/m/7/n", `{"l":[2]}`},
		{"name with a slash", `{"a/b":1}`, `{}`, "/a~1b", `{"a/b":1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := parsed(t, test.to)
			copyPath(parsed(t, test.from), to, test.pointer)

			if diff := cmp.Diff(parsed(t, test.want), to); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPathsFor(t *testing.T) {
	object := Object{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	ignores := []Ignore{
		{Paths: []string{"/all"}},
		{Kind: "Deployment", Name: "web", Paths: []string{"/kind"}},
		{Group: "batch", Paths: []string{"/group"}},
		{Namespace: "other", Paths: []string{"/namespace"}},
	}

	if diff := cmp.Diff([]string{"/all", "/kind"}, pathsFor(object, ignores)); diff != "" {
		t.Error(diff)
	}
}

func TestDifferencesAreReadable(t *testing.T) {
	object := Object{Kind: "Secret", Namespace: "shop", Name: "db"}

	for want, difference := range map[string]Difference{
		"Secret shop/db is missing":              {Object: object, Missing: true},
		"Secret shop/db differs at /a, /data/pw": {Object: object, Paths: []string{"/a", "/data/pw"}},
		"Namespace shop is missing":              {Object: Object{Kind: "Namespace", Name: "shop"}, Missing: true},
		"Secret shop/db belongs to Helm release shop/b and is left alone (take it out of one of the two charts)": {Object: object, Owner: "shop/b"},
	} {
		if got := difference.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
