package plan

import (
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// content returns the text inside a resource, decompressed.
func content(item resource.Resource) (text string, readable bool) {
	switch typed := item.(type) {
	case *omnires.ConfigPatch:
		text, err := bounds.Inflate(typed.TypedSpec().Value)

		return text, err == nil
	case *omnires.KubernetesManifestGroup:
		text, err := bounds.Inflate(typed.TypedSpec().Value)

		return text, err == nil
	case *omnires.KubernetesHealthCheck:
		return typed.TypedSpec().Value.GetJob(), true
	default:
		return "", false
	}
}

// withoutText returns a copy of a resource without the text that it holds, if it is of a type that holds one.
func withoutText(item resource.Resource) (resource.Resource, bool) {
	switch bare := item.DeepCopy().(type) {
	case *omnires.ConfigPatch:
		return bare, bare.TypedSpec().Value.SetUncompressedData(nil) == nil
	case *omnires.KubernetesManifestGroup:
		return bare, bare.TypedSpec().Value.SetUncompressedData(nil) == nil
	case *omnires.KubernetesHealthCheck:
		bare.TypedSpec().Value.Job = ""

		return bare, true
	default:
		return nil, false
	}
}

// specOf returns the parts of a spec for a digest: the text inside, decompressed, if there is one.
func specOf(item resource.Resource) []string {
	text, unpacked := content(item)

	switch typed := item.(type) {
	case *omnires.ConfigPatch:
		if unpacked {
			return []string{text}
		}
	case *omnires.KubernetesManifestGroup:
		if unpacked {
			return []string{text, typed.TypedSpec().Value.GetMode().String()}
		}
	}

	message, ok := protoOf(item)
	if !ok {
		return nil
	}

	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return []string{"cannot be written: " + strings.TrimSpace(err.Error())}
	}

	return []string{string(data)}
}

// protoOf returns the message that the spec of a resource is; false if it is none.
func protoOf(item resource.Resource) (proto.Message, bool) {
	spec, ok := item.Spec().(interface{ GetValue() proto.Message })
	if !ok {
		return nil, false
	}

	return spec.GetValue(), true
}
