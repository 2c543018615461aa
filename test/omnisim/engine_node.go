package omnisim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// reconcileNode adds a machine to the cluster and advances it.
func (e *engine) reconcileNode(ctx context.Context, view *clusterView, set *omni.MachineSet, node *omni.MachineSetNode) error {
	id := node.Metadata().ID()

	hardware, err := find[*omni.MachineStatus](ctx, e.state, omni.NewMachineStatus(id).Metadata())
	if err != nil {
		return err
	}

	if err = e.hold(ctx, node, machineSetStatusController); err != nil {
		return err
	}

	machine, err := find[*omni.ClusterMachine](ctx, e.state, omni.NewClusterMachine(id).Metadata())
	if err != nil {
		return err
	}

	if machine == nil {
		machine = omni.NewClusterMachine(id)
		machine.TypedSpec().Value.KubernetesVersion = view.cluster.TypedSpec().Value.KubernetesVersion
		copyPlace(machine, set)

		if err = e.state.Create(ctx, machine, state.WithCreateOwner(machineSetStatusController)); err != nil {
			return err
		}
	}

	// A machine that another set still has is wiped first; it joins this one when it is free.
	if placed, _ := machine.Metadata().Labels().Get(omni.LabelMachineSet); placed != set.Metadata().ID() {
		e.waiting[view.name()] = struct{}{}

		return nil
	}

	// The cluster waits for a machine that has never connected.
	if hardware == nil {
		return put(ctx, e.state, clusterMachineController, omni.NewClusterMachineStatus(id), func(status *omni.ClusterMachineStatus) {
			copyPlace(status, set)
			setLabel(status, omni.MachineStatusLabelConnected, false)

			spec := status.TypedSpec().Value
			spec.Stage, spec.Ready, spec.IsRemoved = specs.ClusterMachineStatusSpec_UNKNOWN, false, true
		})
	}

	if err = e.occupy(ctx, set, hardware); err != nil {
		return err
	}

	return e.advance(ctx, view, set, node, hardware)
}

// copyPlace labels a resource with the cluster, the set and the role of a machine set.
func copyPlace(res resource.Resource, set *omni.MachineSet) {
	for _, key := range []string{omni.LabelCluster, omni.LabelControlPlaneRole, omni.LabelWorkerRole} {
		if value, ok := set.Metadata().Labels().Get(key); ok {
			res.Metadata().Labels().Set(key, value)
		}
	}

	res.Metadata().Labels().Set(omni.LabelMachineSet, set.Metadata().ID())
}

// advance moves a machine to its next stage if it is time. A dead machine stays in its stage.
func (e *engine) advance(ctx context.Context, view *clusterView, set *omni.MachineSet, node *omni.MachineSetNode, hardware *omni.MachineStatus) error {
	id := node.Metadata().ID()

	current, err := find[*omni.ClusterMachineStatus](ctx, e.state, omni.NewClusterMachineStatus(id).Metadata())
	if err != nil {
		return err
	}

	if current != nil && current.TypedSpec().Value.Stage == specs.ClusterMachineStatusSpec_UNKNOWN {
		current = nil // the machine has connected
	}

	stage, ready := specs.ClusterMachineStatusSpec_INSTALLING, false
	if current != nil {
		stage, ready = current.TypedSpec().Value.Stage, current.TypedSpec().Value.Ready
	}

	if stage == specs.ClusterMachineStatusSpec_BEFORE_DESTROY { // it is listed again
		stage = specs.ClusterMachineStatusSpec_INSTALLING
		if _, joined := e.members[id]; joined {
			stage = specs.ClusterMachineStatusSpec_RUNNING
		}
	}

	_, dead := e.dead[id]
	outdated := stage == specs.ClusterMachineStatusSpec_RUNNING && ready && e.isOutdated(view, id, hardware)

	before, wasReady := stage, ready

	refused := ""
	if outdated && e.applied[id] != view.config {
		refused = e.refusing[id]
	}

	if !dead && current != nil && refused == "" && !(outdated && isMachineLocked(node)) {
		if stage, ready, err = e.nextStage(ctx, view, hardware, stage, ready); err != nil {
			return err
		}
	}

	if current == nil || stage != before || ready != wasReady {
		e.waiting[view.name()] = struct{}{} // for the stage after this one
	}

	if isControlPlane(set) && stage == specs.ClusterMachineStatusSpec_RUNNING && ready {
		e.members[id] = struct{}{}
	}

	connected := hardware.TypedSpec().Value.Connected

	return put(ctx, e.state, clusterMachineController, omni.NewClusterMachineStatus(id), func(status *omni.ClusterMachineStatus) {
		copyPlace(status, set)
		setLabel(status, omni.MachineStatusLabelConnected, connected)
		setLabel(status, omni.UpdateLocked, outdated && isMachineLocked(node))
		status.Metadata().Labels().Set(omni.LabelHostname, hostname(id))
		status.TypedSpec().Value.Stage = stage
		status.TypedSpec().Value.Ready = ready && connected
		status.TypedSpec().Value.IsRemoved = false
		status.TypedSpec().Value.ConfigUpToDate = !outdated
		status.TypedSpec().Value.LastConfigError = refused
		status.TypedSpec().Value.ConfigApplyStatus = specs.ConfigApplyStatus_APPLIED
		status.TypedSpec().Value.ManagementAddress = hardware.TypedSpec().Value.ManagementAddress
	})
}

// nextStage returns the stage after the current one, or the same if it is not time yet.
func (e *engine) nextStage(
	ctx context.Context, view *clusterView, hardware *omni.MachineStatus, stage specs.ClusterMachineStatusSpec_Stage, ready bool,
) (specs.ClusterMachineStatusSpec_Stage, bool, error) {
	id, name := hardware.Metadata().ID(), view.name()
	done := e.elapsed(name, "stage/"+id, fmt.Sprint(stage, ready), 1)

	switch {
	case stage == specs.ClusterMachineStatusSpec_RUNNING && ready:
		return e.startUpdate(view, hardware)
	case !done:
		return stage, ready, nil
	case stage == specs.ClusterMachineStatusSpec_RUNNING:
		return stage, true, nil
	case stage == specs.ClusterMachineStatusSpec_CONFIGURING:
		e.applied[id] = view.config

		return specs.ClusterMachineStatusSpec_RUNNING, true, nil
	case stage == specs.ClusterMachineStatusSpec_UPGRADING:
		return specs.ClusterMachineStatusSpec_BOOTING, false, e.installTalos(ctx, view, hardware)
	case stage == specs.ClusterMachineStatusSpec_INSTALLING:
		e.applied[id] = view.config

		return specs.ClusterMachineStatusSpec_BOOTING, false, e.installTalos(ctx, view, hardware)
	default:
		return specs.ClusterMachineStatusSpec_RUNNING, false, nil
	}
}

// startUpdate starts the next update of a running machine: first a new Talos, one machine of a cluster at a time, then
// a new configuration.
func (e *engine) startUpdate(view *clusterView, hardware *omni.MachineStatus) (specs.ClusterMachineStatusSpec_Stage, bool, error) {
	id := hardware.Metadata().ID()

	switch {
	case talosOf(hardware) != view.cluster.TypedSpec().Value.TalosVersion:
		if e.takeTurn(view, id) {
			return specs.ClusterMachineStatusSpec_UPGRADING, false, nil
		}
	case e.applied[id] != view.config:
		return specs.ClusterMachineStatusSpec_CONFIGURING, false, nil
	case e.turn[view.name()] == id:
		delete(e.turn, view.name())
	}

	return specs.ClusterMachineStatusSpec_RUNNING, true, nil
}

func (e *engine) isOutdated(view *clusterView, id string, hardware *omni.MachineStatus) bool {
	return talosOf(hardware) != view.cluster.TypedSpec().Value.TalosVersion || e.applied[id] != view.config
}

// configurationOf returns a digest of the configuration of a cluster's machines. It changes for all of them when a
// patch changes, as if every patch were the cluster's.
func (e *engine) configurationOf(ctx context.Context, cluster string) (string, error) {
	digest := sha256.New()

	for _, resourceType := range []resource.Type{omni.ConfigPatchType, omni.ExtensionsConfigurationType} {
		list, err := e.listAny(ctx, resourceType, resource.LabelEqual(omni.LabelCluster, cluster))
		if err != nil {
			return "", err
		}

		for _, res := range list {
			if res.Metadata().Phase() == resource.PhaseRunning && e.applies(res) {
				fmt.Fprintln(digest, res.Metadata().ID(), res.Metadata().Version())
			}
		}
	}

	return hex.EncodeToString(digest.Sum(nil)), nil
}

// disabledLabel switches a patch off, since 1.10: Omni keeps it and does not apply it.
const disabledLabel = omni.SystemLabelPrefix + "disabled"

// applies reports whether a patch changes the configuration of machines. The disk of an installation does not: its patch
// and the resource that replaces it in 1.11 say the same.
func (e *engine) applies(res resource.Resource) bool {
	_, disabled := res.Metadata().Labels().Get(disabledLabel)
	patch, isPatch := res.(*omni.ConfigPatch)

	return !isPatch || !isInstallDiskPatch(patch) && !(disabled && e.version.from(since10))
}

func setLabel(res resource.Resource, key string, set bool) {
	if set {
		res.Metadata().Labels().Set(key, "")
	} else {
		res.Metadata().Labels().Delete(key)
	}
}

func hostname(machine string) string {
	if len(machine) > 8 {
		machine = machine[:8]
	}

	return "machine-" + machine
}

func talosOf(hardware *omni.MachineStatus) string {
	return strings.TrimPrefix(hardware.TypedSpec().Value.TalosVersion, "v")
}
