package helm

import (
	"net/http"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// Of a chart's crds folder only that is made which does not exist, whatever kind it is; also if it was made a moment ago.
func TestTheFolderOfCRDsWritesOverNothing(t *testing.T) {
	r := newTried(t)
	r.makeOf("theirs", "")
	r.makeOf("another", "another")

	r.before = func(request *http.Request) {
		if request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/configmaps") && r.of("late") == "" {
			r.makeOf("late", "")
		}
	}

	chart := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{
		"templates/all.yaml": configMap("one"),
		"crds/a.yaml":        configMap("theirs"),
		"crds/b.yaml":        configMap("another") + configMap("late") + configMap("missing"),
		"crds/c.yaml":        "# nothing\n",
		"crds/d.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {of: demo}}\n" +
			"- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed}, data: {of: demo}}\n",
	}}

	if action, err := r.stepWith(chart); action != ActionInstall || err != nil {
		t.Fatalf("%s: %v", action, err)
	}

	for name, want := range map[string]string{"theirs": "somebody", "another": "another", "late": "somebody", "missing": "demo", "listed": "demo", "one": "demo"} {
		if got := r.of(name); got != want {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
	}
}

// Whether something exists has to be known before it is made.
func TestTheFolderOfCRDsThatCannotBeLookedAt(t *testing.T) {
	r := newTried(t)
	r.hidden = configMapPath("theirs")

	chart := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"templates/all.yaml": configMap("one"), "crds/a.yaml": configMap("theirs")}}

	_, err := r.stepWith(chart)
	if err == nil || !strings.Contains(err.Error(), "ConfigMap apps/theirs") || !strings.Contains(err.Error(), "skipCRDs") {
		t.Errorf("got %v", err)
	}

	if r.of("theirs") != "" || r.of("one") != "" {
		t.Errorf("theirs is of %q, one of %q", r.of("theirs"), r.of("one"))
	}
}
