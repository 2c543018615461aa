package omnisim

import (
	"context"
	"errors"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// kubernetesSteps is how many steps an upgrade of Kubernetes takes. It has no machine stages:
// the machines run on, and so does the cluster's status.
const kubernetesSteps = 3

// takeTurn says whether the machine may upgrade now: one machine of a cluster at a time, and
// none while the one whose turn it is has not come back.
func (e *engine) takeTurn(view *clusterView, machine string) bool {
	name := view.name()

	for _, other := range view.machines {
		if id := other.Metadata().ID(); id == e.turn[name] && id != machine {
			e.waiting[name] = struct{}{}

			return false
		}
	}

	e.turn[name] = machine

	return true
}

// installTalos puts the cluster's Talos on a machine.
func (e *engine) installTalos(ctx context.Context, view *clusterView, hardware *omni.MachineStatus) error {
	version := "v" + view.cluster.TypedSpec().Value.TalosVersion

	return e.putMachineStatus(ctx, hardware.Metadata().ID(), func(machine *omni.MachineStatus) {
		machine.TypedSpec().Value.TalosVersion = version
		machine.Metadata().Labels().Set(omni.MachineStatusLabelTalosVersion, version)
		installDisk(machine)
	})
}

// reconcileUpgrades tells how far the versions are.
func (e *engine) reconcileUpgrades(ctx context.Context, view *clusterView) error {
	return errors.Join(e.reconcileTalosUpgrade(ctx, view), e.reconcileKubernetesUpgrade(ctx, view))
}

func (e *engine) reconcileTalosUpgrade(ctx context.Context, view *clusterView) error {
	name, target := view.name(), view.cluster.TypedSpec().Value.TalosVersion
	behind, total := 0, 0

	for _, machine := range view.machines {
		if machine.Metadata().Phase() == resource.PhaseTearingDown {
			continue
		}

		hardware, err := find[*omni.MachineStatus](ctx, e.state, omni.NewMachineStatus(machine.Metadata().ID()).Metadata())
		if err != nil {
			return err
		}

		// A machine that is being installed for the first time is no upgrade.
		if _, installed := e.applied[machine.Metadata().ID()]; hardware == nil || !installed {
			continue
		}

		total++

		if talosOf(hardware) != target {
			behind++
		}
	}

	return put(ctx, e.state, talosUpgradeOwner, omni.NewTalosUpgradeStatus(name), func(upgrade *omni.TalosUpgradeStatus) {
		spec := upgrade.TypedSpec().Value
		upgrade.Metadata().Labels().Set(omni.LabelCluster, name)

		if behind == 0 {
			*spec = specs.TalosUpgradeStatusSpec{}
			spec.Phase, spec.LastUpgradeVersion = specs.TalosUpgradeStatusSpec_Done, target

			return
		}

		spec.Phase = specs.TalosUpgradeStatusSpec_Upgrading
		if spec.LastUpgradeVersion == target {
			spec.Phase = specs.TalosUpgradeStatusSpec_Reverting
		}

		spec.CurrentUpgradeVersion = target
		spec.Status = fmt.Sprintf("updating machines %d/%d", total-behind+1, total)
		spec.Step = "updating machines"
	})
}

func (e *engine) reconcileKubernetesUpgrade(ctx context.Context, view *clusterView) error {
	name, target := view.name(), view.cluster.TypedSpec().Value.KubernetesVersion
	empty := omni.NewKubernetesUpgradeStatus(name)

	current, err := find[*omni.KubernetesUpgradeStatus](ctx, e.state, empty.Metadata())
	if err != nil {
		return err
	}

	last := ""
	if current != nil {
		last = current.TypedSpec().Value.LastUpgradeVersion
	}

	// A cluster without a running control plane takes the version it is told.
	bootstrapped := e.hasHealthyControlPlane(ctx, view)
	done := last == "" || !bootstrapped || (last != target && e.elapsed(name, "kubernetes/"+name, target, kubernetesSteps))
	reverting := last == target && current.TypedSpec().Value.CurrentUpgradeVersion != "" && !e.elapsed(name, "kubernetes/"+name, target, 1)

	if bootstrapped {
		if err = e.markBootstrapped(ctx, name); err != nil {
			return err
		}
	}

	return put(ctx, e.state, kubernetesUpgradeOwner, empty, func(upgrade *omni.KubernetesUpgradeStatus) {
		spec := upgrade.TypedSpec().Value
		upgrade.Metadata().Labels().Set(omni.LabelCluster, name)

		switch {
		case reverting:
			spec.Phase, spec.Step, spec.Status = specs.KubernetesUpgradeStatusSpec_Reverting, "reverting", "reverting the update"
		case done || last == target:
			*spec = specs.KubernetesUpgradeStatusSpec{}
			spec.Phase, spec.LastUpgradeVersion = specs.KubernetesUpgradeStatusSpec_Done, target
		default:
			spec.Phase, spec.CurrentUpgradeVersion = specs.KubernetesUpgradeStatusSpec_Upgrading, target
			spec.Step, spec.Status = "updating control planes", "waiting for the API server"
		}
	})
}

func (e *engine) markBootstrapped(ctx context.Context, cluster string) error {
	return put(ctx, e.state, bootstrapController, omni.NewClusterBootstrapStatus(cluster), func(done *omni.ClusterBootstrapStatus) {
		done.TypedSpec().Value.Bootstrapped = true
	})
}

// hasHealthyControlPlane says whether the Kubernetes API of a cluster answers.
func (e *engine) hasHealthyControlPlane(ctx context.Context, view *clusterView) bool {
	for _, machine := range view.machines {
		if !isControlPlane(machine) {
			continue
		}

		current, err := find[*omni.ClusterMachineStatus](ctx, e.state, omni.NewClusterMachineStatus(machine.Metadata().ID()).Metadata())
		if err != nil || current == nil {
			continue
		}

		_, dead := e.dead[machine.Metadata().ID()]
		spec := current.TypedSpec().Value

		if !dead && spec.Ready && spec.Stage == specs.ClusterMachineStatusSpec_RUNNING {
			return true
		}
	}

	return false
}
