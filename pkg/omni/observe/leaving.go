package observe

import (
	"context"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Leaving lists the machines that are leaving a cluster that stays: those of a MachineSet or MachineSetNode that is
// being torn down, and those that no set lists any more but that Omni has not freed yet. The order is that of
// DeleteProgress.Blockers. A missing cluster has none.
func Leaving(ctx context.Context, st state.State, cluster string) ([]Blocker, error) {
	going, err := setsGoing(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	nodes, err := omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster)
	if err != nil {
		return nil, err
	}

	staying := map[string]bool{}

	for _, node := range nodes {
		set, _ := node.Metadata().Labels().Get(omnires.LabelMachineSet)
		_, goes := going[set]
		staying[node.Metadata().ID()] = !goes && node.Metadata().Phase() == resource.PhaseRunning
	}

	all, err := blockers(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(all, func(machine Blocker) bool { return staying[machine.Machine] }), nil
}
