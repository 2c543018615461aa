package plan

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// unchanged reports whether an update changes nothing. The texts of patches, manifests and jobs are compared by what
// they hold: each tool that writes into Omni has a format of its own, and Omni reads all of them.
func unchanged(ctx context.Context, old, updated resource.Resource) bool {
	if resource.Equal(old, updated) {
		return true
	}

	was, holdsText := withoutText(old)
	is, alsoHoldsText := withoutText(updated)

	return holdsText && alsoHoldsText && resource.Equal(was, is) && sameContent(ctx, old, updated)
}

// sameContent reports whether the texts of two resources differ in their format at most. A text that cannot be read
// within bounds, or that readers read differently, is different from every other one.
func sameContent(ctx context.Context, old, updated resource.Resource) bool {
	was, readable := content(old)
	is, alsoReadable := content(updated)

	if !readable || !alsoReadable {
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
