package deploy

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var update = flag.Bool("update", false, "write the golden files and the kustomize base")

const (
	root      = "../.."
	chartDir  = root + "/artifacts/chart/omni-cluster-operator"
	baseDir   = root + "/artifacts/kustomize/base"
	release   = "omni-cluster-operator"
	namespace = "omni-cluster-operator-system"
)

// render renders the chart as `helm install` would, with the values (YAML) over its defaults, and
// returns the text of each template that is not empty. An error of the schema is returned, too.
func render(values string) (map[string]string, error) { return renderAs(release, namespace, values) }

// renderAs is render for a release of another name or in another namespace.
func renderAs(name, in, values string) (map[string]string, error) {
	return renderBy(engine.Render, name, in, values)
}

// renderBy is renderAs with another engine.
func renderBy(engine func(chart.Charter, common.Values) (map[string]string, error), name, in, values string) (map[string]string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}

	given, err := common.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}

	complete, err := util.ToRenderValues(chart, given, common.ReleaseOptions{
		Name: name, Namespace: in, Revision: 1, IsInstall: true,
	}, common.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}

	rendered, err := engine(chart, complete)
	if err != nil {
		return nil, err
	}

	files := map[string]string{}

	for path, text := range rendered {
		file := filepath.Base(path)
		if strings.HasPrefix(file, "_") || strings.TrimSpace(text) == "" {
			continue
		}

		// Installed by nobody but `helm test`.
		if filepath.Base(filepath.Dir(path)) == "tests" {
			file = testsPrefix + file
		}

		files[file] = strings.TrimSpace(text) + "\n"
	}

	return files, nil
}

// testsPrefix is before the names of files that only `helm test` uses.
const testsPrefix = "tests/"

// mustRender is render without NOTES.txt and without what only `helm test` uses, for values that are good.
func mustRender(t *testing.T, values string) map[string]string {
	t.Helper()

	files, err := render(values)
	if err != nil {
		t.Fatal(err)
	}

	return installed(files)
}

// installed leaves out what is rendered and not installed.
func installed(files map[string]string) map[string]string {
	maps.DeleteFunc(files, func(name, _ string) bool { return name == "NOTES.txt" || strings.HasPrefix(name, testsPrefix) })

	return files
}

// stream joins rendered files to one YAML stream in the order of their names.
func stream(files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "---\n# %s\n%s", name, files[name])
	}

	return b.String()
}

// decode reads the objects of a YAML stream, sorted by kind, namespace and name.
func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()

	var objects []*unstructured.Unstructured

	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)

	for {
		object := &unstructured.Unstructured{}

		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatalf("decode: %v\n%s", err, text)
		}

		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}

	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(identity(a), identity(b)) })

	return objects
}

// identity names an object in a message.
func identity(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// find returns the one object of a kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()

	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}

	t.Fatalf("there is no %s %s", kind, name)

	return nil
}

// valueSets are the values of testdata/values by name, and the defaults.
func valueSets(t *testing.T) map[string]string {
	t.Helper()

	sets := map[string]string{"default": ""}

	paths, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no values: %v", err)
	}

	for _, path := range paths {
		sets[strings.TrimSuffix(filepath.Base(path), ".yaml")] = read(t, path)
	}

	return sets
}

func read(t *testing.T, path string) string {
	t.Helper()

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}

func write(t *testing.T, path, text string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
