package omnicluster

import (
	"context"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
)

// admitted is what Omni had written of upgrades when this process admitted a turn: nothing of the turn was written by then.
type admitted struct {
	turnID
	upgrades observe.UpgradeTimes
}

// noteAdmitted remembers what Omni has written of upgrades if a decision admits a turn that the status does not have yet.
func (r *reconciler) noteAdmitted(ctx context.Context, s *scope, turn *v1alpha1.OmniClusterRollout) {
	id, known := turnOf(turn)
	if stateOf(turn) != v1alpha1.RolloutAdmitted || !known {
		return
	}

	now := admitted{turnID: id}
	if before := s.cluster.Status.Rollout; stateOf(before) == v1alpha1.RolloutAdmitted && now.isOf(before) {
		return // it goes on
	}

	observed, err := observe.Observe(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return // the time of the admission has to do
	}

	now.upgrades = observe.TimesOfUpgrades(observed)
	r.processStates.of(s.cluster).admitted = now
}

// upgradesBefore returns when Omni wrote of upgrades last before the turn of the status, by its clock. Of a turn that an earlier
// process admitted it returns when that was, by our clock: that is right as far as the clocks agree.
func (r *reconciler) upgradesBefore(cluster *v1alpha1.OmniCluster) observe.UpgradeTimes {
	turn := cluster.Status.Rollout
	if noted := r.processStates.of(cluster).admitted; noted.isOf(turn) {
		return noted.upgrades
	}

	return observe.UpgradeTimes{Kubernetes: turn.AdmittedSince.Time, Talos: turn.AdmittedSince.Time}
}
