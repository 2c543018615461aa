package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	omnitemplate "github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// secretText is what the fixture's Secret holds; a reference must never show any of it.
const secretText = "machine:\n  registries:\n    config:\n      docker.io:\n        auth:\n          password: canary-4711\n"

// fixtureValue plays the ConfigMaps and the Secret that testdata/values.json names.
func fixtureValue(source v1alpha1.ValueSource) (string, error) {
	texts := map[string]string{
		"Secret patches/login": secretText,
		"ConfigMap patches/kept": "# why: see the runbook\n" +
			"cluster: {allowSchedulingOnControlPlanes: yes}   # odd spacing stays\n",
		"ConfigMap patches/crlf": "machine:\r\n  env:\r\n    A: b\r\n",
		"ConfigMap manifests/objects.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n---\n" +
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: two}",
	}

	key, err := keyOf(source)
	if err != nil {
		return "", err
	}

	text, ok := texts[fmt.Sprintf("%s %s/%s", key.kind, key.ref.Name, key.ref.Key)]
	if !ok {
		return "", fmt.Errorf("no such fixture: %v", key)
	}

	return text, nil
}

// loadInput reads a list of objects. JSON, because the usual YAML readers would rewrite its numbers.
func loadInput(t testing.TB, name string) Input {
	t.Helper()

	raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}

	return parseInput(t, raw)
}

func parseInput(t testing.TB, raw []byte) Input {
	t.Helper()

	var list struct {
		Items []json.RawMessage `json:"items"`
	}

	mustUnmarshal(t, raw, &list)

	var in Input

	for _, item := range list.Items {
		var kind struct {
			Kind string `json:"kind"`
		}

		if err := json.Unmarshal(item, &kind); err != nil {
			t.Fatal(err)
		}

		switch kind.Kind {
		case "OmniCluster":
			in.Cluster = &v1alpha1.OmniCluster{}
			mustUnmarshal(t, item, in.Cluster)
		case "OmniControlPlane":
			in.ControlPlanes = append(in.ControlPlanes, parse[v1alpha1.OmniControlPlane](t, item))
		case "OmniWorkers":
			in.Workers = append(in.Workers, parse[v1alpha1.OmniWorkers](t, item))
		case "OmniMachine":
			in.Machines = append(in.Machines, parse[v1alpha1.OmniMachine](t, item))
		default:
			t.Fatalf("unknown kind %q", kind.Kind)
		}
	}

	return in
}

func parse[T any](t testing.TB, raw []byte) T {
	t.Helper()

	var object T

	mustUnmarshal(t, raw, &object)

	return object
}

func mustUnmarshal(t testing.TB, raw []byte, into any) {
	t.Helper()

	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// render assembles and renders, with a mark of the cluster in the management cluster "hub", ID hub-1.
func render(t testing.TB, in Input, values ValueFunc) []byte {
	t.Helper()

	documents, err := Assemble(in)
	if err != nil {
		t.Fatal(err)
	}

	text, err := documents.Render(values, MarkOf(in.Cluster, Hub{ID: "hub-1", Name: "hub"}))
	if err != nil {
		t.Fatal(err)
	}

	return text
}

// validate is what Omni's own rules say of a template.
func validate(t testing.TB, text []byte) error {
	t.Helper()

	return load(t, text).Validate()
}

// translate runs Omni's own rules over a template and returns the resources it stands for.
func translate(t testing.TB, text []byte) []resource.Resource {
	t.Helper()

	loaded := load(t, text)

	if err := loaded.Validate(); err != nil {
		t.Fatalf("Omni refuses the template: %v\n%s", err, text)
	}

	resources, err := loaded.Translate()
	if err != nil {
		t.Fatalf("Omni cannot translate the template: %v\n%s", err, text)
	}

	return resources
}

func load(t testing.TB, text []byte) *omnitemplate.Template {
	t.Helper()

	loaded, err := omnitemplate.Load(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("Omni cannot load the template: %v\n%s", err, text)
	}

	return loaded
}
