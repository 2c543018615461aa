package export

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/google/go-cmp/cmp"
	omnitemplate "github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// What FromTemplate makes of a template stands for the same resources in Omni, mark aside.
func TestRoundTripOfGoldenTemplates(t *testing.T) {
	for _, name := range []string{"minimal", "classes", "full", "values"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "template", "testdata", name+".golden.yaml"))
			if err != nil {
				t.Fatal(err)
			}

			wantSameResources(t, text)
		})
	}
}

func wantSameResources(t *testing.T, text []byte) *Objects {
	t.Helper()

	objects, err := FromTemplate(t.Context(), text, ObjectOptions{Connection: "omni", Namespace: "fleet", Adopt: true})
	if err != nil {
		t.Fatal(err)
	}

	rendered := renderObjects(t, objects)

	if diff := cmp.Diff(resourcesOf(t, text), resourcesOf(t, rendered)); diff != "" {
		t.Errorf("resources in Omni (-template +objects):\n%s", diff)
	}

	return objects
}

func renderObjects(t *testing.T, objects *Objects) []byte {
	t.Helper()

	documents, err := template.Assemble(objects.Input())
	if err != nil {
		t.Fatal(err)
	}

	rendered, err := documents.Render(objects.Value, template.Mark{UID: "another"})
	if err != nil {
		t.Fatal(err)
	}

	return rendered
}

// resourcesOf shows every resource of a template as text, without the mark.
func resourcesOf(t *testing.T, text []byte) []string {
	t.Helper()

	loaded, err := omnitemplate.Load(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	resources, err := loaded.Translate()
	if err != nil {
		t.Fatal(err)
	}

	var shown []string

	for _, item := range resources {
		for _, key := range []string{
			v1alpha1.MarkOwnerUID, v1alpha1.MarkHub, v1alpha1.MarkOwnerNamespace, v1alpha1.MarkOwnerName, v1alpha1.MarkManagementCluster,
		} {
			item.Metadata().Annotations().Delete(key)
		}

		item.Metadata().SetCreated(time.Time{})
		item.Metadata().SetUpdated(time.Time{})

		shown = append(shown, showResource(t, item))
	}

	slices.Sort(shown)

	return shown
}

func showResource(t *testing.T, item resource.Resource) string {
	t.Helper()

	described, err := resource.MarshalYAML(item)
	if err != nil {
		t.Fatal(err)
	}

	text, err := yamlText(described)
	if err != nil {
		t.Fatal(err)
	}

	return text
}
