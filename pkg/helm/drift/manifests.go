package drift

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// ManifestLimits bound all objects of a release together, and all CRDs of a chart: Helm
// decodes them several times, and keeps them while it waits. Twice what a worker may print, in bytes.
func ManifestLimits() foreign.Limits {
	return foreign.Limits{Bytes: 2 * render.MaxText, Depth: 200, Nodes: 500_000, Expanded: 2 * render.MaxText}
}

// ManifestSeparator stands between two YAML documents.
const ManifestSeparator = "\n---\n"

// CheckManifests checks texts together, which names tell apart. It returns their size, or the name of the one that is
// wrong, or of the one with which they are too much. Errors are those of pkg/foreign.
func CheckManifests(ctx context.Context, texts map[string]string) (foreign.Size, string, error) {
	names := slices.Sorted(maps.Keys(texts))

	var all strings.Builder

	for _, name := range names {
		all.WriteString(texts[name])
		all.WriteString(ManifestSeparator)
	}

	size, err := foreign.Measure(ctx, []byte(all.String()), ManifestLimits())
	if err == nil {
		return size, "", nil
	}

	for _, name := range names {
		if err := foreign.Check(ctx, []byte(texts[name]), ManifestLimits()); err != nil {
			return size, name, err
		}
	}

	return size, fmt.Sprintf("all of %d files", len(names)), err
}

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
