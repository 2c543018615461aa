package app

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
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

// What others wrote into an object does not reach the terminal as a command, nor as a column or row of its own.
func TestTerminalIsNotCommanded(t *testing.T) {
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer

		tool := &tool{IOStreams: genericiooptions.IOStreams{Out: &out}, colour: colour}
		changes := []fieldChange{{Object: "OmniCluster/a", Field: "metadata.labels.\x1b]0;x\a", Now: "a\x1b[2Jb\u009b31mc\rd\te\nf", Then: map[string]any{"\x1b": "\x1b[1A"}}}

		if err := tool.writeFieldChanges("", changes); err != nil {
			t.Fatal(err)
		}

		text := strings.NewReplacer(plain, "", ends, "").Replace(out.String())
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 || strings.Count(text, "\n") != 2 {
			t.Errorf("a control character at %d, or another line, in %q", i, text)
		}

		if !strings.Contains(text, `a^[[2Jb 31mc\rd e f`) {
			t.Errorf("%q", text)
		}
	}
}

// What a tool writes on each object to know its own is in no file: that it would go is no change. Something else that would go is one.
func TestBookkeepingIsNoChange(t *testing.T) {
	const kustomize, tracking, release = "kustomize.toolkit.fluxcd.io/name", "argocd.argoproj.io/tracking-id", "meta.helm.sh/release-name"

	object := func(manager string, labels, annotations map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}})
		o.SetLabels(labels)
		o.SetAnnotations(annotations)

		return o
	}

	for name, test := range map[string]struct {
		there, then *unstructured.Unstructured
		want        []fieldChange
	}{
		"labels of Flux": {
			object("kustomize-controller", map[string]string{kustomize: "fleet", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil), object("", nil, nil), nil,
		},
		"labels of Flux, and another": {
			object("kustomize-controller", map[string]string{kustomize: "fleet", "tier": "prod"}, nil), object("", nil, nil),
			[]fieldChange{{Field: "metadata.labels", Now: map[string]any{"tier": "prod"}}},
		},
		"a label of Flux that the file sets": {
			object("kustomize-controller", map[string]string{kustomize: "fleet"}, nil), object("", map[string]string{kustomize: "other"}, nil),
			[]fieldChange{{Field: "metadata.labels." + kustomize, Now: "fleet", Then: "other"}},
		},
		"the annotation of Argo CD": {
			object("argocd-controller", nil, map[string]string{tracking: "a:b", "a": "b"}), object("", nil, map[string]string{"a": "b"}), nil,
		},
		"what Helm writes": {
			object("helm-controller", map[string]string{"app.kubernetes.io/managed-by": "Helm"}, map[string]string{release: "fleet"}), object("", nil, nil), nil,
		},
		"of another tool": {
			object("kubectl", nil, map[string]string{tracking: "a:b"}), object("", nil, nil),
			[]fieldChange{{Field: "metadata.annotations", Now: map[string]any{tracking: "a:b"}}},
		},
	} {
		if diff := cmp.Diff(test.want, changesBetween(test.there, test.then)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// Objects are asked for as everything else is: with the deadline of the plugin, and in its name.
func TestObjectsOfFilesAreAskedForByThePlugin(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	const (
		objects = "/apis/omni.texashpc.com/v1alpha1/namespaces/fleet/omniclusters/edge-01"
		group   = `{"name":"omni.texashpc.com","versions":[{"groupVersion":"omni.texashpc.com/v1alpha1","version":"v1alpha1"}]}`
		kind    = `{"name":"omniclusters","namespaced":true,"kind":"OmniCluster","verbs":["get","patch"]}`
	)

	answers := map[string]string{
		"GET /api":                             `{"kind":"APIVersions","apiVersion":"v1","versions":[]}`,
		"GET /apis":                            `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + group + `]}`,
		"GET /apis/omni.texashpc.com/v1alpha1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"omni.texashpc.com/v1alpha1","resources":[` + kind + `]}`,
		"PATCH " + objects:                     `{"kind":"OmniCluster","apiVersion":"omni.texashpc.com/v1alpha1","metadata":{"name":"edge-01"}}`,
	}

	agents := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == objects {
			agents <- r.UserAgent()
		}

		answer, has := answers[r.Method+" "+r.URL.Path]
		if !has {
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}

		w.Header().Set("Content-Type", "application/json")

		if !has {
			w.WriteHeader(http.StatusNotFound)
		}

		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)

	output, _, err := newSession(t).run("plan", "-f", manifest(t), "--server", server.URL, "--cache-dir", t.TempDir())
	if !errors.Is(err, errChanges) || !strings.Contains(output, "(created)") {
		t.Errorf("%v\n%s", err, output)
	}

	if len(agents) != 2 {
		t.Errorf("%d requests", len(agents))
	}

	for range len(agents) {
		if agent := <-agents; !strings.HasPrefix(agent, "kubectl-omni/") {
			t.Errorf("asked as %q", agent)
		}
	}
}
