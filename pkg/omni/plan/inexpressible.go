package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Inexpressible returns what a template would change in Omni beyond the owner's mark: for an exported template, this is
// what it cannot express. The changes are those of Sync for an adoption, without the update of the Cluster if that only
// adds the mark. Without changes, applying the template changes nothing.
//
// Errors: those of Load and Sync.
func Inexpressible(ctx context.Context, st state.State, template []byte) ([]Change, error) {
	loaded, err := Load(template)
	if err != nil {
		return nil, fmt.Errorf("check the export: %w", err)
	}

	plan, err := Sync(ctx, st, loaded, Options{EveryDestroyIsDestructive: true})
	if err != nil {
		return nil, fmt.Errorf("compare the export with Omni: %w", err)
	}

	left := slices.Clone(plan.WaitingForOmni)

	for _, s := range plan.steps {
		if !onlyMarks(s) {
			left = append(left, s.change)
		}
	}

	return left, nil
}

// onlyMarks reports whether a step is the update that writes the owner's mark, and nothing else.
func onlyMarks(s step) bool {
	if s.change.Type != omnires.ClusterType || s.change.Action != ActionUpdate {
		return false
	}

	return resource.Equal(withoutMarks(s.old), withoutMarks(s.new))
}

func withoutMarks(item resource.Resource) resource.Resource {
	bare := item.DeepCopy()
	omni.DeleteMarks(bare.Metadata())
	bare.Metadata().Annotations().Delete(omnires.ResourceManagedByClusterTemplates)

	return bare
}
