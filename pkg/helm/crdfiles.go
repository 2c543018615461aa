package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// withoutCRDs is a file without the CRDs that exist; nil if it has no other.
func withoutCRDs(file *render.CRD, exists func(name string) (bool, error)) (*render.CRD, error) {
	objects, err := readObjects(file.Data)
	if err != nil {
		return file, nil // Helm itself says what is wrong with it
	}

	var (
		kept    [][]byte
		missing int
	)

	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			there, err := exists(object.GetName())
			if err != nil {
				return nil, err
			}

			if there {
				continue
			}

			missing++
		}

		text, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("write %s of %s: %w", object.GetName(), file.Name, err)
		}

		kept = append(kept, text)
	}

	switch {
	case len(kept) == len(objects):
		return file, nil
	case missing == 0:
		return nil, nil //nolint:nilnil // nothing of the file is needed
	}

	copied := *file
	copied.Data = bytes.Join(kept, []byte("\n---\n"))

	return &copied, nil
}

// readObjects are the objects in a text, those in lists included.
func readObjects(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data)+1); ; {
		var document runtime.RawExtension
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}

		if text := bytes.TrimSpace(document.Raw); len(text) == 0 || string(text) == "null" {
			continue
		}

		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(document.Raw); err != nil {
			return nil, err
		}

		if !object.IsList() {
			objects = append(objects, object)

			continue
		}

		list, err := object.ToList()
		if err != nil {
			return nil, err
		}

		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
}
