package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// example reads a manifest of one document.
func example(t *testing.T, file string) unstructured.Unstructured {
	t.Helper()

	dir, err := examples()
	if err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}

	var object unstructured.Unstructured
	if err := yaml.UnmarshalStrict(data, &object.Object); err != nil {
		t.Fatal(err)
	}

	return object
}

func TestExamplesAreNamedFromTheWorkingDirectory(t *testing.T) {
	dir, err := examples()
	if err != nil {
		t.Fatal(err)
	}

	if want := filepath.Join("..", "..", "artifacts", "examples"); dir != want {
		t.Errorf("got %s, want %s", dir, want)
	}

	for _, file := range append(clusterExamples[:], "connection.yaml") {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}

// What the acts name is what the examples of the workload cluster say, and they fit each other.
func TestExamplesFitTheActs(t *testing.T) {
	export, sync, release := example(t, exportExample), example(t, syncExample), example(t, releaseExample)

	for _, test := range []struct {
		object unstructured.Unstructured
		path   []string
		want   string
	}{
		{export, []string{"metadata", "name"}, exportName},
		{export, []string{"spec", "clusterRef", "name"}, exampleCluster},
		{export, []string{"spec", "targetSecretRef", "name"}, kubeconfigSecret},
		{sync, []string{"metadata", "name"}, syncName},
		{sync, []string{"spec", "clusterRef", "name"}, exampleCluster},
		{sync, []string{"spec", "kubeconfigSecretRef", "name"}, kubeconfigSecret},
		{sync, []string{"spec", "sourceSecretRef", "name"}, sourceSecret},
		{sync, []string{"spec", "targetSecretRef", "name"}, sourceSecret},
		{sync, []string{"spec", "targetSecretRef", "namespace"}, apps},
		{release, []string{"metadata", "name"}, releaseName},
		{release, []string{"spec", "clusterRef", "name"}, exampleCluster},
		{release, []string{"spec", "kubeconfigSecretRef", "name"}, kubeconfigSecret},
		{release, []string{"spec", "releaseName"}, configMap},
		{release, []string{"spec", "namespace"}, apps},
		{release, []string{"spec", "chart", "chart"}, standIn.Name},
		{release, []string{"spec", "chart", "version"}, standIn.Version},
		{release, []string{"spec", "chart", "values", "ui", "message"}, "Hello from the management cluster"},
	} {
		if got, _, err := unstructured.NestedString(test.object.Object, test.path...); err != nil || got != test.want {
			t.Errorf("%s: %v is %q, want %q (%v)", test.object.GetKind(), test.path, got, test.want, err)
		}
	}

	groups, _, err := unstructured.NestedStringSlice(export.Object, "spec", "serviceAccount", "groups")
	if err != nil || !slices.Equal(groups, []string{automationGroup}) {
		t.Errorf("groups %v, want %s (%v)", groups, automationGroup, err)
	}

	for _, object := range []unstructured.Unstructured{export, sync, release} {
		if object.GetNamespace() != namespace {
			t.Errorf("%s is in %s, want %s", object.GetKind(), object.GetNamespace(), namespace)
		}
	}
}

func TestAdapted(t *testing.T) {
	const two = "kind: Secret\nmetadata: {name: a}\n---\nkind: OmniConnection\nspec: {endpoint: there, auth: {}}\n"

	edit := func(spec map[string]any) { spec["endpoint"] = "here" }

	for name, test := range map[string]struct {
		data, kind, want, fault string
	}{
		"the second object":  {two, "OmniConnection", "kind: OmniConnection\nspec:\n  auth: {}\n  endpoint: here\n", ""},
		"an absent kind":     {two, "OmniCluster", "", "it has no OmniCluster"},
		"one without a spec": {two, "Secret", "", "it has no Secret"},
		"nothing":            {"", "OmniCluster", "", "it has no OmniCluster"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := adapted([]byte(test.data), test.kind, edit)
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}

			if (err == nil) != (test.fault == "") || err != nil && err.Error() != test.fault {
				t.Errorf("error %v, want %q", err, test.fault)
			}
		})
	}

	if _, err := adapted([]byte("a: [\n"), "OmniCluster", edit); err == nil {
		t.Error("text that is not YAML was taken")
	}
}

func TestFiles(t *testing.T) {
	want := " -f examples/cluster.yaml -f examples/controlplane.yaml -f examples/workers-static.yaml" +
		" -f examples/workers-class.yaml -f examples/machine.yaml"
	if got := files("examples", clusterExamples[:]...); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The rights that the demonstration gives are those that the documentation tells to give.
func TestAccessIsDocumented(t *testing.T) {
	for file, prefix := range map[string]string{
		"../../README.md": "\nkubectl --kubeconfig=$ADMIN ",
		"../../artifacts/examples/kubeconfig-export.yaml": "\n#   kubectl ",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for _, args := range accessCommands() {
			if want := prefix + commandLine(args); !strings.Contains(string(text), want) {
				t.Errorf("%s does not contain %q", file, want)
			}
		}
	}
}
