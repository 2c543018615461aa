package plan

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// manifestLimits bound the manifests of one group. The library's own reader has no bounds, and an Omni may send what no
// template made: a group that is beyond them counts as one that cannot be read.
//
//nolint:gochecknoglobals // a constant
var manifestLimits = foreign.Limits{Bytes: 8 << 20, Depth: 128, Nodes: 200_000, Expanded: 16 << 20}

// manifestObject names a Kubernetes object as Omni's inventory does: without the version of its API.
type manifestObject struct{ group, kind, namespace, name string }

// manifest is a Kubernetes object of a manifest group, with its content as JSON.
type manifest struct {
	object  manifestObject
	content []byte
}

// objectsOf lists the objects of a manifest group; readable is false if the manifests cannot be read.
func objectsOf(ctx context.Context, item resource.Resource) (objects []manifestObject, readable bool) {
	manifests, readable := manifestsOf(ctx, item)
	for _, one := range manifests {
		objects = append(objects, one.object)
	}

	return objects, readable
}

// manifestsOf reads the manifests of a group; readable is false if they cannot be read.
func manifestsOf(ctx context.Context, item resource.Resource) (manifests []manifest, readable bool) {
	group, isGroup := item.(*omnires.KubernetesManifestGroup)
	if !isGroup {
		return nil, false
	}

	text, err := bounds.Inflate(group.TypedSpec().Value)
	if err != nil {
		return nil, false
	}

	documents, err := foreign.Documents(ctx, []byte(text), manifestLimits)
	if err != nil {
		return nil, false
	}

	for _, document := range documents {
		if content := string(document); content == "null" || content == "{}" { // only comments
			continue
		}

		var header struct {
			metav1.TypeMeta `json:",inline"`

			Metadata struct{ Name, Namespace string } `json:"metadata"`
		}

		if err := foreign.Unmarshal(ctx, document, manifestLimits, &header); err != nil {
			return nil, false
		}

		kind := header.GroupVersionKind()
		if kind.Kind == "" || header.Metadata.Name == "" {
			return nil, false
		}

		object := manifestObject{kind.Group, kind.Kind, header.Metadata.Namespace, header.Metadata.Name}
		manifests = append(manifests, manifest{object, document})
	}

	return manifests, true
}
