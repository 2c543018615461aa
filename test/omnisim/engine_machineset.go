package omnisim

import (
	"context"
	"errors"

	"github.com/cosi-project/runtime/pkg/resource"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// setFinalizers block the deletion of a machine set until its machines are gone.
func setFinalizers() []string {
	return []string{machineSetController, machineSetStatusController}
}

// reconcileSet advances one machine set.
func (e *engine) reconcileSet(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	if err := e.hold(ctx, set, setFinalizers()...); err != nil {
		return err
	}

	// The machines of a locked cluster do not change.
	if !view.tearingDown() && isClusterLocked(view.cluster) {
		return e.writeSetStatus(ctx, view, set)
	}

	if set.Metadata().Phase() == resource.PhaseRunning && !view.tearingDown() {
		if err := e.allocate(ctx, view, set); err != nil {
			return err
		}
	}

	if err := errors.Join(e.reconcileSetMachines(ctx, view, set), e.provision(ctx, view, set)); err != nil {
		return err
	}

	if set.Metadata().Phase() == resource.PhaseTearingDown {
		return errors.Join(e.writeSetStatus(ctx, view, set), e.dismantleSet(ctx, view, set))
	}

	return e.writeSetStatus(ctx, view, set)
}

// reconcileSetMachines advances the listed machines, and releases the others.
func (e *engine) reconcileSetMachines(ctx context.Context, view *clusterView, set *omni.MachineSet) error {
	all, running := view.nodesOf(set.Metadata().ID())
	listed := map[string]bool{}

	var failed error

	for _, node := range running {
		listed[node.Metadata().ID()] = true
		failed = errors.Join(failed, e.reconcileNode(ctx, view, set, node))
	}

	// A node is destroyed at once; its machine stays in the cluster until it is wiped.
	for _, node := range all {
		if node.Metadata().Phase() == resource.PhaseTearingDown {
			failed = errors.Join(failed, e.release(ctx, node, machineSetStatusController, machineSetNodeController))
		}
	}

	for _, machine := range view.machinesOf(set.Metadata().ID()) {
		if !listed[machine.Metadata().ID()] {
			failed = errors.Join(failed, e.detach(ctx, view, set, machine))
		}
	}

	return failed
}

// detach takes a machine that no node lists any more out of its set, as soon as etcd allows that.
func (e *engine) detach(ctx context.Context, view *clusterView, set *omni.MachineSet, machine *omni.ClusterMachine) error {
	allowed, err := e.etcdAllows(ctx, view, set, machine.Metadata().ID())

	switch {
	case err != nil:
		return err
	case allowed:
		return e.letGo(ctx, view, machine)
	}

	e.waiting[view.name()] = struct{}{}

	return e.markStage(ctx, machine.Metadata().ID(), specs.ClusterMachineStatusSpec_BEFORE_DESTROY)
}

// writeSetStatus writes the statuses of a machine set.
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

// setStatus counts the machines of a set and derives the phase. It also reports whether a machine, and so etcd, runs.
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

		if current.TypedSpec().Value.LastConfigError != "" {
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
