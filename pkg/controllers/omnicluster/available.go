package omnicluster

import (
	"context"
	"errors"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

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
