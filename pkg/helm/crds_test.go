package helm

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func crdPath(name string) string {
	return "/apis/" + crdGroup + "/v1/" + crdResource + "/" + name + ".example.com"
}

// crd is a CRD of the chart demo.
func crd(name string) string {
	return "---\napiVersion: " + crdGroup + "/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + ".example.com, annotations: {of: demo}}\n"
}

// crdOf says whose a CRD is; empty if there is none.
func (r *tried) crdOf(name string) string {
	if found := r.get(crdPath(name)); found != nil {
		return found.GetAnnotations()["of"]
	}

	return ""
}

// makeCRD makes a CRD of somebody.
func (r *tried) makeCRD(name string) {
	r.put(crdPath(name), map[string]any{
		"apiVersion": crdGroup + "/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"annotations": map[string]any{"of": "somebody"}},
	})
}

// Of a chart's crds folder only that is made which does not exist; also if it was made a moment ago.
func TestTheFolderOfCRDsWritesOverNothing(t *testing.T) {
	r := newTried(t)
	r.makeCRD("theirs")

	r.before = func(request *http.Request) {
		if request.Method != http.MethodGet && strings.Contains(request.URL.Path, crdResource) && r.crdOf("late") == "" {
			r.makeCRD("late")
		}
	}

	chart := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{
		"templates/all.yaml": configMap("one"),
		"crds/a.yaml":        crd("theirs"),
		"crds/b.yaml":        crd("late") + crd("missing"),
		"crds/c.yaml":        "# nothing\n",
		"crds/d.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: theirs.example.com}}\n" +
			"- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: listed.example.com, annotations: {of: demo}}}\n",
	}}

	if action, err := r.stepWith(chart); action != ActionInstall || err != nil {
		t.Fatalf("%s: %v", action, err)
	}

	for name, want := range map[string]string{"theirs": "somebody", "late": "somebody", "missing": "demo", "listed": "demo"} {
		if got := r.crdOf(name); got != want {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
	}

	if got := r.of("one"); got != "demo" {
		t.Errorf("one is of %q", got)
	}
}

// A cluster lists a kind a moment after its CRD is established.
func TestAKindIsListedLate(t *testing.T) {
	r := newTried(t)

	looked := 0
	r.before = func(request *http.Request) {
		if request.URL.Path != "/apis" || r.crdOf("widgets") == "" {
			return
		}

		if looked++; looked == 3 {
			r.versions = []string{"v1"}
		}
	}

	definition := crd("widgets") + "spec: {group: example.com, names: {kind: Widget}, versions: [{name: v1, served: true, storage: true}]}\n"
	chart := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{
		"templates/all.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\n",
		"crds/a.yaml":        definition,
	}}

	if action, err := r.stepWith(chart); action != ActionInstall || err != nil {
		t.Fatalf("%s: %v", action, err)
	}
}

// What is no CRD is refused before anything is made, wherever in the folder it is.
func TestTheFolderOfCRDsHasOnlyCRDs(t *testing.T) {
	binding := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: all}\n"

	for name, folder := range map[string]map[string]string{
		"alone":       {"crds/b.yaml": binding},
		"behind":      {"crds/b.yaml": crd("first") + "---\n" + binding},
		"in a list":   {"crds/b.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(binding), "\n", "\n  ") + "\n"},
		"dependency":  {"charts/child/Chart.yaml": "apiVersion: v2\nname: child\nversion: 1.0.0\n", "charts/child/crds/b.yaml": binding},
		"other group": {"crds/b.yaml": "apiVersion: example.com/v1\nkind: CustomResourceDefinition\nmetadata: {name: all}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			folder["templates/all.yaml"], folder["crds/a.yaml"] = configMap("one"), crd("other")

			_, err := r.stepWith(chartserver.Chart{Name: "demo", Version: "1.0.0", Files: folder})

			var failure *Error
			if !errors.As(err, &failure) || failure.Reason != ReasonRefused || !strings.Contains(err.Error(), `b.yaml has the "C`) || !strings.Contains(err.Error(), "spec.skipCRDs") {
				t.Errorf("got %v", err)
			}

			if r.crdOf("other") != "" || r.crdOf("first") != "" || r.of("one") != "" {
				t.Error("something was made")
			}

			r.settings.SkipCRDs = true
			if action, err := r.stepWith(chartserver.Chart{Name: "demo", Version: "1.0.1", Files: folder}); action != ActionInstall || err != nil {
				t.Errorf("with skipCRDs: %s, %v", action, err)
			}
		})
	}
}

// Whether something exists has to be known before it is made.
func TestTheFolderOfCRDsThatCannotBeLookedAt(t *testing.T) {
	r := newTried(t)
	r.hidden = crdPath("theirs")

	chart := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"templates/all.yaml": configMap("one"), "crds/a.yaml": crd("theirs")}}

	_, err := r.stepWith(chart)
	if err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition theirs.example.com") || !strings.Contains(err.Error(), "skipCRDs") {
		t.Errorf("got %v", err)
	}

	if r.crdOf("theirs") != "" || r.of("one") != "" {
		t.Errorf("theirs is of %q, one of %q", r.crdOf("theirs"), r.of("one"))
	}
}
