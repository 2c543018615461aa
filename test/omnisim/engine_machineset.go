package omnisim

import (
	"context"
	"errors"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/cosi/labels"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// setFinalizers hold a machine set until its machines are gone.
func setFinalizers() []string {
	return []string{machineSetController, machineSetStatusController}
}

// reconcileSet brings one machine set along.
func (e *engine) reconcileSet(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	if err := e.hold(ctx, set, setFinalizers()...); err != nil {
		return err
	}

	// The machines of a locked cluster are left as they are.
	if !view.tearingDown() && isClusterLocked(view.cluster) {
		return e.writeSetStatus(ctx, view, set)
	}

	if set.Metadata().Phase() == resource.PhaseRunning && !view.tearingDown() {
		if err := e.allocate(ctx, view, set); err != nil {
			return err
		}
	}

	if err := e.reconcileSetMachines(ctx, view, set); err != nil {
		return err
	}

	if set.Metadata().Phase() == resource.PhaseTearingDown {
		return errors.Join(e.writeSetStatus(ctx, view, set), e.dismantleSet(ctx, view, set))
	}

	return e.writeSetStatus(ctx, view, set)
}

// reconcileSetMachines brings machines that are listed along, and lets those go that are not.
func (e *engine) reconcileSetMachines(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	all, running := view.nodesOf(set.Metadata().ID())
	listed := map[string]bool{}

	var failed error

	for _, node := range running {
		listed[node.Metadata().ID()] = true
		failed = errors.Join(failed, e.reconcileNode(ctx, view, set, node))
	}

	// A node goes at once; its machine stays in the cluster until it is wiped.
	for _, node := range all {
		if node.Metadata().Phase() == resource.PhaseTearingDown {
			failed = errors.Join(failed, e.release(ctx, node, machineSetStatusController, machineSetNodeController))
		}
	}

	for _, machine := range view.machinesOf(set.Metadata().ID()) {
		if !listed[machine.Metadata().ID()] {
			failed = errors.Join(failed, e.letGo(ctx, view, machine))
		}
	}

	return failed
}

// allocate gives a set with a machine class the machines that it lacks, and takes those away
// that it has too many: disconnected ones first, then the oldest.
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

	for _, machine := range e.availableMachines(ctx, allocation.Name, view.cluster) {
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

// unlimited is more machines than there are.
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

// availableMachines returns the machines of a class that are free and can run the cluster's Talos.
func (e *engine) availableMachines(ctx context.Context, className string, cluster *omni.Cluster) []string {
	class, err := find[*omni.MachineClass](ctx, e.state, omni.NewMachineClass(className).Metadata())
	if err != nil || class == nil {
		return nil
	}

	selectors, err := labels.ParseSelectors(class.TypedSpec().Value.MatchLabels)
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

// writeSetStatus says how far the set is.
func (e *engine) writeSetStatus(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	spec, etcd, err := e.setStatus(ctx, view, set)
	if err != nil {
		return err
	}

	id := set.Metadata().ID()

	err = put(ctx, e.state, machineSetStatusController, omni.NewMachineSetStatus(id), func(setStatus *omni.MachineSetStatus) {
		setStatus.TypedSpec().Value = spec

		for key, value := range set.Metadata().Labels().Raw() {
			setStatus.Metadata().Labels().Set(key, value)
		}
	})
	if err != nil || !isControlPlane(set) {
		return err
	}

	return put(ctx, e.state, controlPlaneController, omni.NewControlPlaneStatus(id), func(cp *omni.ControlPlaneStatus) {
		cp.Metadata().Labels().Set(omni.LabelCluster, view.name())

		for _, condition := range []specs.ConditionType{specs.ConditionType_WireguardConnection, specs.ConditionType_Etcd} {
			if etcd {
				cp.TypedSpec().Value.SetCondition(condition,
					specs.ControlPlaneStatusSpec_Condition_Ready, specs.ControlPlaneStatusSpec_Condition_Info, "")
			} else {
				cp.TypedSpec().Value.SetCondition(condition,
					specs.ControlPlaneStatusSpec_Condition_NotReady, specs.ControlPlaneStatusSpec_Condition_Error, "no control plane machine is running")
			}
		}
	})
}

// setStatus counts the machines of a set and derives the phase. It also says whether a machine
// runs, and so etcd does.
func (e *engine) setStatus(ctx context.Context, view *clusterView, set *omni.MachineSet) (*specs.MachineSetStatusSpec, bool, error) {
	_, nodes := view.nodesOf(set.Metadata().ID())
	machines := view.machinesOf(set.Metadata().ID())
	counts := &specs.Machines{Total: uint32(len(machines)), Requested: uint32(len(nodes))}
	spec := &specs.MachineSetStatusSpec{Machines: counts, MachineAllocation: omni.GetMachineAllocation(set)}

	if allocation := spec.MachineAllocation; allocation != nil && allocation.AllocationType == specs.MachineSetSpec_MachineAllocation_Static {
		counts.Requested = allocation.MachineCount
	}

	upgrading, configuring := 0, 0

	for _, machine := range machines {
		current, err := find[*omni.ClusterMachineStatus](ctx, e.state, omni.NewClusterMachineStatus(machine.Metadata().ID()).Metadata())
		if err != nil {
			return nil, false, err
		}

		if current == nil {
			continue
		}

		switch value := current.TypedSpec().Value; {
		case value.Stage == specs.ClusterMachineStatusSpec_RUNNING && value.Ready:
			counts.Healthy++
		case value.Stage == specs.ClusterMachineStatusSpec_UPGRADING:
			upgrading++
		case value.Stage == specs.ClusterMachineStatusSpec_CONFIGURING:
			configuring++
		}

		if _, ok := current.Metadata().Labels().Get(omni.MachineStatusLabelConnected); ok {
			counts.Connected++
		}

		if _, ok := current.Metadata().Labels().Get(omni.UpdateLocked); ok {
			spec.LockedUpdates++
		}
	}

	switch {
	case set.Metadata().Phase() == resource.PhaseTearingDown:
		spec.Phase = specs.MachineSetPhase_Destroying
		counts.Healthy, counts.Connected, counts.Requested = 0, 0, 0
	case isControlPlane(set) && len(nodes) == 0 && counts.Requested == 0:
		spec.Phase, spec.Error = specs.MachineSetPhase_Failed, "control plane machine set must have at least one node"
	case len(nodes) < int(counts.Requested) || len(machines) < len(nodes):
		spec.Phase = specs.MachineSetPhase_ScalingUp
	case len(nodes) > int(counts.Requested) || len(machines) > len(nodes):
		spec.Phase = specs.MachineSetPhase_ScalingDown
	case upgrading > 0:
		spec.Phase = specs.MachineSetPhase_Upgrading
	case configuring > 0:
		spec.Phase = specs.MachineSetPhase_Reconfiguring
	default:
		spec.Phase = specs.MachineSetPhase_Running
		spec.Ready = int(counts.Healthy) == len(nodes) && counts.Connected == counts.Total
	}

	return spec, counts.Healthy > 0, nil
}
