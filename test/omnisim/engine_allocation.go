package omnisim

import (
	"context"
	"slices"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/cosi/labels"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// allocate adds the missing machines to a set with a machine class, and removes surplus ones: disconnected ones first,
// then the oldest.
func (e *engine) allocate(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	allocation := omni.GetMachineAllocation(set)
	if allocation == nil {
		return nil
	}

	all, running := view.nodesOf(set.Metadata().ID())
	wanted := int(allocation.MachineCount)

	if allocation.AllocationType == specs.MachineSetSpec_MachineAllocation_Unlimited {
		wanted = len(all) + unlimited
	}

	if len(running) > wanted {
		return e.deallocate(ctx, running, len(running)-wanted)
	}

	for _, machine := range e.availableMachines(ctx, set, view.cluster) {
		if len(all) >= wanted {
			return nil
		}

		node := omni.NewMachineSetNode(machine, set)
		node.Metadata().Labels().Set(omni.LabelManagedByMachineSetNodeController, "")
		node.Metadata().Finalizers().Add(machineSetNodeController)

		if err := e.state.Create(ctx, node); err != nil && !state.IsConflictError(err) {
			return err
		}

		all = append(all, node)
		view.nodes = append(view.nodes, node)
	}

	return nil
}

// unlimited is more machines than any test has.
const unlimited = 1 << 20

func (e *engine) deallocate(ctx context.Context, nodes []*omni.MachineSetNode, count int) error {
	disconnected := map[string]bool{}

	for _, node := range nodes {
		machine, err := find[*omni.MachineStatus](ctx, e.state, omni.NewMachineStatus(node.Metadata().ID()).Metadata())
		if err != nil {
			return err
		}

		disconnected[node.Metadata().ID()] = machine == nil || !machine.TypedSpec().Value.Connected
	}

	slices.SortStableFunc(nodes, func(a, b *omni.MachineSetNode) int {
		switch first, second := disconnected[a.Metadata().ID()], disconnected[b.Metadata().ID()]; {
		case first && !second:
			return -1
		case second && !first:
			return 1
		default:
			return a.Metadata().Created().Compare(b.Metadata().Created())
		}
	})

	for _, node := range nodes[:count] {
		if err := e.teardown(ctx, node); err != nil {
			return err
		}
	}

	return nil
}

// availableMachines returns the machines of a set's class that are free and can run the cluster's Talos. Of a class that is
// provisioned these are the machines that were made for the set.
func (e *engine) availableMachines(ctx context.Context, set *omni.MachineSet, cluster *omni.Cluster) []string {
	class, err := find[*omni.MachineClass](ctx, e.state, omni.NewMachineClass(omni.GetMachineAllocation(set).Name).Metadata())
	if err != nil || class == nil {
		return nil
	}

	terms := class.TypedSpec().Value.MatchLabels
	if class.TypedSpec().Value.AutoProvision != nil {
		terms = []string{omni.LabelMachineRequestSet + " = " + set.Metadata().ID()}
	}

	selectors, err := labels.ParseSelectors(terms)
	if err != nil {
		return nil
	}

	machines, err := safe.StateListAll[*omni.MachineStatus](ctx, e.state)
	if err != nil {
		return nil
	}

	var free []string

	for machine := range machines.All() {
		_, available := machine.Metadata().Labels().Get(omni.MachineStatusLabelAvailable)
		has, wants := minor(machine.TypedSpec().Value.TalosVersion), minor(cluster.TypedSpec().Value.TalosVersion)

		if available && has <= wants && selectors.Matches(*machine.Metadata().Labels()) {
			free = append(free, machine.Metadata().ID())
		}
	}

	return free
}
