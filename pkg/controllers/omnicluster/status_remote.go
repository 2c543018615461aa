package omnicluster

import (
	"context"
	"errors"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// remoteStatus converts Omni's state into the status of the object. It keeps only the machines that an OmniMachine
// describes: a class may have hundreds, and nobody needs all of them in the status.
func remoteStatus(status observe.Status, described map[string]bool) *v1alpha1.OmniClusterRemoteStatus {
	remote := &v1alpha1.OmniClusterRemoteStatus{
		Phase:              status.Phase,
		KubernetesVersion:  withV(status.KubernetesVersion),
		TalosVersion:       withV(status.TalosVersion),
		KubernetesAPIReady: status.KubernetesAPIReady,
		ControlPlaneReady:  status.ControlPlaneReady,
		Machines:           machineCounts(status.Machines),
		Upgrades:           v1alpha1.UpgradeStatuses{Kubernetes: upgradeStatus(status.Kubernetes), Talos: upgradeStatus(status.Talos)},
	}

	// Omni derives the phase from the teardown a moment later.
	if status.TearingDown {
		remote.Phase = v1alpha1.ClusterPhaseDestroying
	}

	for _, set := range status.MachineSets {
		// Omni's own verdict may be about the size that the set had before.
		ready := set.Known && set.Ready && !set.TearingDown && set.Machines.Requested == set.Desired
		remote.MachineSets = append(remote.MachineSets, v1alpha1.MachineSetStatus{
			Name: set.Name, Phase: set.Phase, Ready: ready, Machines: machineCounts(set.Machines), LockedUpdates: int32(set.LockedUpdates), //nolint:gosec // a count of machines
		})
	}

	for _, machine := range status.MachineList {
		if described[machine.ID] {
			remote.MachineStates = append(remote.MachineStates, v1alpha1.MachineState{
				ID: machine.ID, Stage: machine.Stage, Connected: machine.Connected, Ready: machine.Ready && !machine.RefusesConfiguration(),
			})
		}
	}

	return remote
}

func machineCounts(machines observe.Machines) v1alpha1.MachineCounts {
	return v1alpha1.MachineCounts{
		Total: int32(machines.Total), Connected: int32(machines.Connected), //nolint:gosec // counts of machines
		Healthy: int32(machines.Healthy), Requested: int32(machines.Requested), //nolint:gosec // the same
	}
}

func upgradeStatus(upgrade observe.Upgrade) *v1alpha1.UpgradeStatus {
	if !upgrade.Known {
		return nil
	}

	return &v1alpha1.UpgradeStatus{Phase: upgrade.Phase, Step: upgrade.Step, Error: upgrade.Error, Version: withV(upgrade.Version)}
}

// withV returns a version in the form of specs, with a v.
func withV(version string) string {
	if version == "" {
		return ""
	}

	return "v" + version
}

// describedMachines returns the machines that an OmniMachine of the cluster describes.
func describedMachines(input template.Input) map[string]bool {
	described := map[string]bool{}
	for i := range input.Machines {
		described[input.Machines[i].EffectiveMachineID()] = true
	}

	return described
}

// checkAvailable checks whether Omni reports the cluster as running.
func (r *reconciler) checkAvailable(ctx context.Context, s *scope) (loop.Outcome, error) {
	if err := s.synced.unshown; err != nil {
		return loop.Wait(time.Second, v1alpha1.ReasonNotRunning, "Omni has just taken changes: %s", omni.Message(err)), nil
	}

	status, err := observe.Observe(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	// Whole manifests can come from Secrets, with the names of their objects.
	for _, objects := range []*observe.Objects{&status.Manifests.Pending, &status.Manifests.Deleting} {
		objects.First = s.rendered.secrets.Clean(ctx, objects.First)
	}

	for i := range status.FailedChecks {
		status.FailedChecks[i] = s.rendered.secrets.Clean(ctx, status.FailedChecks[i])
	}

	s.remote = &status

	running, reason, message := observe.Running(status)

	// A new cluster has no objects before Kubernetes works in it, so that is told first.
	if running || reason == observe.ReasonManifestsNotApplied {
		if answered, missing := observe.KubernetesSeenReady(status); !answered && isStarting(s.cluster.Status, s.seen.live) {
			return loop.Wait(0, v1alpha1.ReasonNotRunning, "%s", missing), nil
		}
	}

	if !running {
		// Omni has what the objects say as soon as no set lists a machine, which leaves when it is wiped. It may be dead, and what
		// else keeps the cluster from running.
		message += leavingMachines(r.leaving(ctx, s))

		return loop.Wait(0, availableReason(reason), "%s", message), nil
	}

	return loop.Continue(v1alpha1.ReasonRunning, "%s", message+r.whatWent(s)), nil
}

// isStarting reports whether Kubernetes has not yet been seen to work in this very cluster. A cluster whose ID is
// recorded, and which the status does not list as starting, has run before.
func isStarting(status v1alpha1.OmniClusterStatus, live omni.Live) bool {
	return status.Starting || live.UUID == "" || status.OmniClusterID != live.UUID
}

func availableReason(reason string) string {
	switch reason {
	case observe.ReasonKubernetesUpgrading, observe.ReasonTalosUpgrading:
		return v1alpha1.ReasonUpgrading
	case observe.ReasonUpgradeFailed:
		return v1alpha1.ReasonUpgradeFailed
	case observe.ReasonManifestsNotApplied:
		return v1alpha1.ReasonManifestsNotApplied
	default:
		return v1alpha1.ReasonNotRunning
	}
}
