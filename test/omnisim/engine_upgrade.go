package omnisim

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// kubernetesSteps is how many steps an upgrade of Kubernetes takes. It has no machine stages: the machines run on, and
// the cluster's status does not change.
const kubernetesSteps = 3

// takeTurn reports whether the machine may upgrade now: one machine of a cluster at a time, and none until the previous
// one is back.
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

// installTalos installs the cluster's Talos on a machine.
func (e *engine) installTalos(ctx context.Context, view *clusterView, hardware *omni.MachineStatus) error {
	version := "v" + view.cluster.TypedSpec().Value.TalosVersion

	return e.putMachineStatus(ctx, hardware.Metadata().ID(), func(machine *omni.MachineStatus) {
		machine.TypedSpec().Value.TalosVersion = version
		machine.Metadata().Labels().Set(omni.MachineStatusLabelTalosVersion, version)
		installDisk(machine)
	})
}

// reconcileUpgrades writes the statuses of the upgrades.
func (e *engine) reconcileUpgrades(ctx context.Context, view *clusterView) error {
	return errors.Join(e.reconcileTalosUpgrade(ctx, view), e.reconcileKubernetesUpgrade(ctx, view))
}

func (e *engine) reconcileTalosUpgrade(ctx context.Context, view *clusterView) error {
	name, target := view.name(), view.cluster.TypedSpec().Value.TalosVersion
	behind, total := 0, len(view.machines)

	for _, machine := range view.machines {
		hardware, err := find[*omni.MachineStatus](ctx, e.state, omni.NewMachineStatus(machine.Metadata().ID()).Metadata())
		if err != nil {
			return err
		}

		// The first installation of a machine is no upgrade.
		if _, installed := e.applied[machine.Metadata().ID()]; hardware != nil && installed && talosOf(hardware) != target {
			behind++
		}
	}

	current := e.turn[name]

	return put(ctx, e.state, talosUpgradeOwner, omni.NewTalosUpgradeStatus(name), func(upgrade *omni.TalosUpgradeStatus) {
		spec := upgrade.TypedSpec().Value
		last := spec.LastUpgradeVersion
		*spec = specs.TalosUpgradeStatusSpec{Phase: specs.TalosUpgradeStatusSpec_Done, LastUpgradeVersion: target}

		if behind == 0 && current == "" {
			return
		}

		spec.LastUpgradeVersion = last
		spec.Step = "no machines are currently upgrading"

		if current != "" {
			spec.Step = "current machine: " + current
		}

		counts := fmt.Sprintf("%d/%d", min(total-behind+1, total), total)

		if last == target {
			spec.Phase, spec.Status = specs.TalosUpgradeStatusSpec_Reverting, "reverting update "+counts

			return
		}

		spec.Phase, spec.Status, spec.CurrentUpgradeVersion = specs.TalosUpgradeStatusSpec_Upgrading, "updating machines "+counts, target
	})
}

// reconcileKubernetesUpgrade writes the status of the Kubernetes upgrade: it appears when Kubernetes has answered for
// the first time, as an upgrade from nothing that is done a step later.
func (e *engine) reconcileKubernetesUpgrade(ctx context.Context, view *clusterView) error {
	if !e.answers(ctx, view) {
		return nil
	}

	name, target := view.name(), view.cluster.TypedSpec().Value.KubernetesVersion
	empty := omni.NewKubernetesUpgradeStatus(name)

	if err := e.setBootstrapped(ctx, name, true); err != nil {
		return err
	}

	before, err := find[*omni.KubernetesUpgradeStatus](ctx, e.state, empty.Metadata())
	if err != nil {
		return err
	}

	last, phase := "", specs.KubernetesUpgradeStatusSpec_Unknown
	if before != nil {
		last, phase = before.TypedSpec().Value.LastUpgradeVersion, before.TypedSpec().Value.Phase
	}

	steps := int64(kubernetesSteps)
	if last == "" || last == target {
		steps = 1
	}

	if phase == specs.KubernetesUpgradeStatusSpec_Done && last == target {
		return nil
	}

	done := e.elapsed(name, "kubernetes/"+name, last+" to "+target, steps)

	return put(ctx, e.state, kubernetesUpgradeOwner, empty, func(upgrade *omni.KubernetesUpgradeStatus) {
		upgrade.Metadata().Labels().Set(omni.LabelCluster, name)

		switch spec := upgrade.TypedSpec().Value; {
		case done:
			*spec = specs.KubernetesUpgradeStatusSpec{Phase: specs.KubernetesUpgradeStatusSpec_Done, LastUpgradeVersion: target}
			e.forget("kubernetes/" + name)
		case last == target:
			spec.Phase, spec.CurrentUpgradeVersion = specs.KubernetesUpgradeStatusSpec_Reverting, ""
			spec.Step, spec.Status = "reverting the change", ""
		default:
			spec.Phase, spec.CurrentUpgradeVersion = specs.KubernetesUpgradeStatusSpec_Upgrading, target
			spec.Step, spec.Status = "updating control planes", "waiting for a restart"
		}
	})
}

func (e *engine) setBootstrapped(ctx context.Context, cluster string, bootstrapped bool) error {
	return put(ctx, e.state, bootstrapController, omni.NewClusterBootstrapStatus(cluster), func(done *omni.ClusterBootstrapStatus) {
		done.TypedSpec().Value.Bootstrapped = bootstrapped
	})
}
