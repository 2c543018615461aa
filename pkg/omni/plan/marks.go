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
func RemoveMarks(ctx context.Context, live state.State, cluster string, keys omni.MarkKeys, ours func(omni.Marks) bool) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	pointer := omnires.NewCluster(cluster).Metadata()

	_, err = live.UpdateWithConflicts(ctx, pointer, func(found resource.Resource) error {
		annotations := found.Metadata().Annotations()

		removed = false

		if !ours(omni.MarksOf(found.Metadata(), keys)) {
			return nil
		}

		removed = true

		for _, key := range []string{keys.UID, keys.Hub, keys.Namespace, keys.Name, keys.ManagementCluster} {
			annotations.Delete(key)
		}

		return nil
	}, state.WithExpectedPhaseAny())
	if err != nil && !state.IsNotFoundError(err) {
		return false, fmt.Errorf("remove the owner's mark from cluster %q: %w", cluster, err)
	}

	return removed && err == nil, nil
}
