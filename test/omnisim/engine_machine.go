package omnisim

import (
	"context"
	"errors"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// disconnectSteps is how long Omni takes to report a silent machine as disconnected (about 275 s in the real one).
const disconnectSteps = 5

// machineLabels is the resource that holds a copy of a machine's labels, for classes and the web interface.
type machineLabels = system.ResourceLabels[*omni.MachineStatus]

// machineLabelsType is the type of machineLabels. Its name takes a hundred regular expressions to make.
var machineLabelsType = sync.OnceValue(system.ResourceLabelsType[*omni.MachineStatus])

func newMachineLabels(id string) *machineLabels {
	labels := &machineLabels{}
	*labels.Metadata() = resource.NewMetadata(resources.DefaultNamespace, machineLabelsType(), id, resource.VersionUndefined)

	return labels
}

// reconcileMachines handles what concerns machines and not one cluster: links that are torn down, machines that fell
// silent, and sets with a class that wait for machines.
func (e *engine) reconcileMachines(ctx context.Context) error {
	links, err := safe.StateListAll[*siderolink.Link](ctx, e.state)
	if err != nil {
		return err
	}

	var failed error

	for link := range links.All() {
		if link.Metadata().Phase() == resource.PhaseTearingDown {
			failed = errors.Join(failed, e.removeMachine(ctx, link))
		}
	}

	// A cluster may have waited for a machine that has just connected.
	for id := range e.arrived {
		node, getErr := e.state.Get(ctx, omni.NewMachineSetNode(id, omni.NewMachineSet("")).Metadata())
		if getErr == nil {
			e.dirty[clusterOf(node)] = struct{}{}
		}

		delete(e.arrived, id)
	}

	for id, since := range e.dead {
		if e.now-since >= disconnectSteps {
			failed = errors.Join(failed, e.setConnected(ctx, id, false))
		}
	}

	// A machine set may wait for free machines.
	sets, err := safe.StateListAll[*omni.MachineSet](ctx, e.state)
	if err != nil {
		return err
	}

	for set := range sets.All() {
		if omni.GetMachineAllocation(set) != nil {
			e.dirty[clusterOf(set)] = struct{}{}
		}
	}

	for _, resourceType := range []resource.Type{omni.MachineClassType, omni.MachineLabelsType, omni.KernelArgsType, operator.MachineInstallDiskConfigType} {
		list, listErr := e.listAny(ctx, resourceType)
		failed = errors.Join(failed, listErr)

		for _, res := range list {
			if res.Metadata().Phase() == resource.PhaseTearingDown {
				failed = errors.Join(failed, e.release(ctx, res))
			}
		}
	}

	return failed
}

// occupy records in a machine's status which set it belongs to.
func (e *engine) occupy(ctx context.Context, set *omni.MachineSet, hardware *omni.MachineStatus) error {
	return e.putMachineStatus(ctx, hardware.Metadata().ID(), func(machine *omni.MachineStatus) {
		copyPlace(machine, set)
		setLabel(machine, omni.MachineStatusLabelAvailable, false)

		spec := machine.TypedSpec().Value
		spec.Cluster, spec.Maintenance, spec.Role = clusterOf(set), false, specs.MachineStatusSpec_WORKER

		if isControlPlane(set) {
			spec.Role = specs.MachineStatusSpec_CONTROL_PLANE
		}
	})
}

// letGo wipes a machine and frees it. A machine that does not answer cannot be wiped: it stays in its set until it
// comes back or its link is removed.
func (e *engine) letGo(ctx context.Context, view *clusterView, machine *omni.ClusterMachine) error {
	id, name := machine.Metadata().ID(), view.name()

	hardware, err := find[*omni.MachineStatus](ctx, e.state, omni.NewMachineStatus(id).Metadata())
	if err != nil {
		return err
	}

	if hardware != nil {
		if err = e.markStage(ctx, id, specs.ClusterMachineStatusSpec_DESTROYING); err != nil {
			return err
		}

		if _, dead := e.dead[id]; dead || !e.elapsed(name, "stage/"+id, "destroying", 1) {
			return nil
		}

		if err = e.freeMachine(ctx, id); err != nil {
			return err
		}
	}

	for _, ptr := range []resource.Pointer{
		omni.NewClusterMachineStatus(id).Metadata(), omni.NewClusterMachineIdentity(id).Metadata(), omni.NewClusterMachine(id).Metadata(),
	} {
		if err = e.drop(ctx, ptr); err != nil {
			return err
		}
	}

	e.forget("stage/" + id)
	delete(e.applied, id)
	delete(e.members, id)
	e.waiting[name] = struct{}{}

	// Another set may wait for a free machine.
	e.machines = true

	return nil
}

// markStage writes the stage of a machine that is to leave.
func (e *engine) markStage(ctx context.Context, id string, stage specs.ClusterMachineStatusSpec_Stage) error {
	ptr := omni.NewClusterMachineStatus(id).Metadata()

	_, err := e.state.UpdateWithConflicts(ctx, ptr, func(res resource.Resource) error {
		spec := res.(*omni.ClusterMachineStatus).TypedSpec().Value
		spec.Stage, spec.Ready = stage, spec.Ready && stage == specs.ClusterMachineStatusSpec_BEFORE_DESTROY

		return nil
	}, state.WithUpdateOwner(clusterMachineController), state.WithExpectedPhaseAny())

	return ignoreNotFound(err)
}

// freeMachine makes a wiped machine available again.
func (e *engine) freeMachine(ctx context.Context, id string) error {
	return e.putMachineStatus(ctx, id, func(machine *omni.MachineStatus) {
		for _, key := range []string{omni.LabelCluster, omni.LabelMachineSet, omni.LabelControlPlaneRole, omni.LabelWorkerRole} {
			machine.Metadata().Labels().Delete(key)
		}

		setLabel(machine, omni.MachineStatusLabelAvailable, true)

		spec := machine.TypedSpec().Value
		spec.Cluster, spec.Maintenance, spec.Role = "", true, specs.MachineStatusSpec_NONE
	})
}

// removeMachine removes a machine whose link is torn down, and unblocks what waits for the machine.
func (e *engine) removeMachine(ctx context.Context, link *siderolink.Link) error {
	id := link.Metadata().ID()

	for _, ptr := range []resource.Pointer{
		omni.NewMachineStatus(id).Metadata(), newMachineLabels(id).Metadata(),
		omni.NewMachine(id).Metadata(), omni.NewMachineLabels(id).Metadata(), omni.NewKernelArgs(id).Metadata(),
	} {
		if err := e.drop(ctx, ptr); err != nil {
			return err
		}
	}

	delete(e.dead, id)
	delete(e.shutDown, id)

	for _, ptr := range []resource.Pointer{
		omni.NewMachineSetNode(id, omni.NewMachineSet("")).Metadata(), omni.NewClusterMachine(id).Metadata(),
	} {
		belongs, err := e.state.Get(ctx, ptr)
		if state.IsNotFoundError(err) {
			continue
		}

		if err != nil {
			return err
		}

		e.dirty[clusterOf(belongs)] = struct{}{}

		if ptr.Type() == omni.MachineSetNodeType {
			if err = e.teardown(ctx, belongs); err != nil {
				return err
			}
		}
	}

	return e.release(ctx, link, *link.Metadata().Finalizers()...)
}

// putMachineStatus changes a machine's status, and the copy of its labels. It does nothing if the machine does not
// exist.
func (e *engine) putMachineStatus(ctx context.Context, id string, change func(*omni.MachineStatus)) error {
	updated, err := e.state.UpdateWithConflicts(ctx, omni.NewMachineStatus(id).Metadata(), func(res resource.Resource) error {
		change(res.(*omni.MachineStatus))

		return nil
	}, state.WithUpdateOwner(machineStatusController), state.WithExpectedPhaseAny())
	if err != nil {
		return ignoreNotFound(err)
	}

	return e.copyLabels(ctx, updated)
}

func (e *engine) copyLabels(ctx context.Context, machine resource.Resource) error {
	return put(ctx, e.state, labelsController, newMachineLabels(machine.Metadata().ID()), func(copied *machineLabels) {
		for key := range copied.Metadata().Labels().Raw() {
			if _, ok := machine.Metadata().Labels().Get(key); !ok {
				copied.Metadata().Labels().Delete(key)
			}
		}

		for key, value := range machine.Metadata().Labels().Raw() {
			copied.Metadata().Labels().Set(key, value)
		}
	})
}

// setConnected marks a machine as connected or not.
func (e *engine) setConnected(ctx context.Context, id string, connected bool) error {
	err := e.putMachineStatus(ctx, id, func(machine *omni.MachineStatus) {
		machine.TypedSpec().Value.Connected = connected
		setLabel(machine, omni.MachineStatusLabelConnected, connected)
		setLabel(machine, omni.MachineStatusLabelReadyToUse, connected)
		setLabel(machine, omni.MachineStatusLabelDisconnected, !connected && !e.shutDown[id])
	})
	if err != nil {
		return err
	}

	e.wake(ctx, id)

	_, err = e.state.UpdateWithConflicts(ctx, siderolink.NewLink(id, nil).Metadata(), func(res resource.Resource) error {
		res.(*siderolink.Link).TypedSpec().Value.Connected = connected

		return nil
	}, state.WithUpdateOwner(machineController), state.WithExpectedPhaseAny())

	return ignoreNotFound(err)
}

// wake makes the engine reconcile the cluster of the machine.
func (e *engine) wake(ctx context.Context, id string) {
	machine, err := find[*omni.MachineStatus](ctx, e.state, omni.NewMachineStatus(id).Metadata())
	if err != nil || machine == nil {
		return
	}

	if name := clusterOf(machine); name != "" {
		e.waiting[name] = struct{}{}
		e.dirty[name] = struct{}{}
	}
}
