package deploy

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// helmsOwn are the labels that say that Helm manages an object. It does not manage the base.
var helmsOwn = regexp.MustCompile(`(?m)^ +(app\.kubernetes\.io/managed-by: Helm|helm\.sh/chart: .*)\n`)

const generated = "# Generated from artifacts/chart/omni-cluster-operator; see kustomization.yaml.\n"

// TestBase: the base has exactly the files of the chart's defaults, and kustomize builds the same objects
// from them, and the namespace.
func TestBase(t *testing.T) {
	want := mustRender(t, "")

	for name, text := range want {
		want[name] = generated + helmsOwn.ReplaceAllString(text, "")

		if *update {
			write(t, filepath.Join(baseDir, name), want[name])
		}

		if diff := cmp.Diff(want[name], read(t, filepath.Join(baseDir, name))); diff != "" {
			t.Errorf("%s differs from the chart (-update writes it); -chart +base:\n%s", name, diff)
		}
	}

	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), filesOfBase(t)); diff != "" {
		t.Errorf("files of the base; -chart +base:\n%s", diff)
	}

	objects := decode(t, build(t, baseDir))

	home := find(t, objects, "Namespace", namespace)
	if got := home.GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("Pod security of the namespace is %q", got)
	}

	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Namespace" })

	if diff := cmp.Diff(decode(t, stream(want)), objects); diff != "" {
		t.Errorf("kustomize builds other objects; -chart +base:\n%s", diff)
	}
}

// filesOfBase lists the rendered files: all but the two that are written by hand.
func filesOfBase(t *testing.T) []string {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(baseDir, "*"))
	if err != nil {
		t.Fatal(err)
	}

	var names []string

	for _, path := range paths {
		if name := filepath.Base(path); name != "kustomization.yaml" && name != "namespace.yaml" {
			names = append(names, name)
		}
	}

	return names
}

// build is `kustomize build`.
func build(t *testing.T, dir string) string {
	t.Helper()

	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}

	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// TestOverlay: what the how-to shows for kustomize works.
func TestOverlay(t *testing.T) {
	dir := t.TempDir()

	base, err := filepath.Abs(baseDir)
	if err != nil {
		t.Fatal(err)
	}

	// kustomize wants a relative path.
	relative, err := filepath.Rel(resolved(t, dir), resolved(t, base))
	if err != nil {
		t.Fatal(err)
	}

	write(t, filepath.Join(dir, "kustomization.yaml"), `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - `+relative+`
images:
  - name: omni-cluster-operator
    newName: registry.example.com/omni-cluster-operator
    newTag: v9
`)

	objects := decode(t, build(t, dir))

	for kind, name := range map[string]string{"StatefulSet": "omni-apiserver", "Deployment": "omni-controller"} {
		containers, _, err := unstructured.NestedSlice(find(t, objects, kind, name).Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("%s: %v, containers %v", name, err, containers)
		}

		if got := containers[0].(map[string]any)["image"]; got != "registry.example.com/omni-cluster-operator:v9" {
			t.Errorf("%s runs %v", name, got)
		}
	}
}

func resolved(t *testing.T, path string) string {
	t.Helper()

	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}

	return path
}
