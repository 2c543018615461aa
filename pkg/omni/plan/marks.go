package plan

import (
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// RemoveMarks removes the owner's mark from a cluster, if it is the caller's; another owner's mark, no mark and no
// cluster are no error. It reads and writes the live state, not the copy. It retries conflicts until the call's
// deadline.
func RemoveMarks(ctx context.Context, live state.State, cluster string, ours func(omni.Marks) bool) error {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	_, err := live.UpdateWithConflicts(ctx, omnires.NewCluster(cluster).Metadata(), func(found resource.Resource) error {
		if ours(omni.MarksOf(found.Metadata())) {
			omni.DeleteMarks(found.Metadata())
		}

		return nil
	}, state.WithExpectedPhaseAny())
	if err != nil && !state.IsNotFoundError(err) {
		return fmt.Errorf("remove the owner's mark from cluster %q: %w", cluster, err)
	}

	return nil
}
