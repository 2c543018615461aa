package manifest

import (
	"errors"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

func TestFilesOfCRDs(t *testing.T) {
	crd := func(name string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
	}
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"
	exists := func(name string) (bool, error) { return name == "there", nil }

	for name, test := range map[string]struct {
		text string
		want []string // names of the objects that are left; nil leaves no file
		same bool     // the file stays as it is
	}{
		"missing":             {crd("a") + "---\n# a comment\n---\n" + crd("b"), []string{"a", "b"}, true},
		"all there":           {crd("there"), nil, false},
		"one there":           {crd("there") + "---\n" + crd("a"), []string{"a"}, false},
		"there, and another":  {crd("there") + "---\n" + object, nil, false},
		"some, and another":   {crd("there") + "---\n" + object + "---\n" + crd("a"), []string{"plain", "a"}, false},
		"no CRD":              {object, []string{"plain"}, true},
		"nothing":             {"# nothing\n", []string{}, true},
		"not readable":        {crd("there") + "---\n{", []string{"?"}, true},
		"no object":           {"words\n", []string{"?"}, true},
		"JSON, one after one": {`{"kind":"CustomResourceDefinition","metadata":{"name":"there"}}{"kind":"CustomResourceDefinition","metadata":{"name":"a"}}`, []string{"a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := &render.CRD{Name: "crds/all.yaml", Data: []byte(test.text)}

			got, err := WithoutCRDs(file, exists)
			if err != nil || string(file.Data) != test.text || (got == file) != test.same || (got == nil) != (test.want == nil) {
				t.Fatalf("%+v, %v", got, err)
			}

			if test.same || got == nil {
				return
			}

			objects, err := Objects(got.Data)
			if err != nil || got.Name != file.Name || len(objects) != len(test.want) {
				t.Fatalf("%s: %v", got.Data, err)
			}

			for i, object := range objects {
				if object.GetName() != test.want[i] {
					t.Errorf("object %d is %s, want %s", i, object.GetName(), test.want[i])
				}
			}
		})
	}

	refused := func(string) (bool, error) { return false, errors.New("may not look") }
	if _, err := WithoutCRDs(&render.CRD{Data: []byte(crd("a"))}, refused); err == nil || !strings.Contains(err.Error(), "may not look") {
		t.Errorf("got %v", err)
	}
}
