package drift

import (
	"bytes"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// ParseObjects are the objects in a text, those in lists included. Nothing bounds what reading it costs: the text was checked
// before. The error is that of a text that is no YAML, or of a document that is no object.
func ParseObjects(data []byte) ([]*unstructured.Unstructured, error) {
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
