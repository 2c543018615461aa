package plan

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// unchanged reports whether an update changes nothing. The texts of patches, manifests and jobs are compared by what
// they hold: each tool that writes into Omni has a format of its own, and Omni reads all of them.
func unchanged(ctx context.Context, old, updated resource.Resource) bool {
	if resource.Equal(old, updated) {
		return true
	}

	reformatted, holdsText := withTextOf(old, updated)

	return holdsText && resource.Equal(old, reformatted) && sameContent(ctx, old, updated)
}

// withTextOf returns a copy of a resource with the text of another one, if it is of a type that holds a text.
func withTextOf(other, item resource.Resource) (resource.Resource, bool) {
	switch from := other.(type) {
	case *omnires.ConfigPatch:
		if to, isPatch := item.DeepCopy().(*omnires.ConfigPatch); isPatch {
			to.TypedSpec().Value.Data, to.TypedSpec().Value.CompressedData = from.TypedSpec().Value.Data, from.TypedSpec().Value.CompressedData

			return to, true
		}
	case *omnires.KubernetesManifestGroup:
		if to, isGroup := item.DeepCopy().(*omnires.KubernetesManifestGroup); isGroup {
			to.TypedSpec().Value.Data, to.TypedSpec().Value.CompressedData = from.TypedSpec().Value.Data, from.TypedSpec().Value.CompressedData

			return to, true
		}
	case *omnires.KubernetesHealthCheck:
		if to, isCheck := item.DeepCopy().(*omnires.KubernetesHealthCheck); isCheck {
			to.TypedSpec().Value.Job = from.TypedSpec().Value.Job

			return to, true
		}
	}

	return nil, false
}

// sameContent reports whether the texts of two resources differ in their format at most. A text that cannot be read
// within bounds, or that readers read differently, is different from every other one.
func sameContent(ctx context.Context, old, updated resource.Resource) bool {
	was, known := content(old)
	is, alsoKnown := content(updated)

	if !known || !alsoKnown {
		return false
	}

	if was == is {
		return true
	}

	before, err := foreign.ContentSum(ctx, []byte(was), manifestLimits)
	if err != nil {
		return false
	}

	after, err := foreign.ContentSum(ctx, []byte(is), manifestLimits)

	return err == nil && before == after
}
