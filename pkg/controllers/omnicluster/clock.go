package omnicluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// correctTimes has the times that count in a rollout be no later than now, in the status and in what this process keeps. Later
// ones were written while the clock was ahead: a turn would not end before the clock gets there. Package
// consent corrects when the last turn ended: that depends on the ticket.
func (r *reconciler) correctTimes(cluster *v1alpha1.OmniCluster) {
	now, state, status := r.options.Now(), r.processStates.of(cluster), &cluster.Status
	state.unwell, state.tried.at = byClock(state.unwell, now), byClock(state.tried.at, now)
	status.LastSyncTime = rollout.NotAfter(status.LastSyncTime, now)

	turn := status.Rollout
	if turn == nil {
		return
	}

	isAdmitted, isTried := state.admitted.isOf(turn), state.tried.isOf(turn)

	for _, since := range []**metav1.Time{&turn.WellSince, &turn.AdmittedSince, &turn.HeldSince, &turn.ChangedSince} {
		*since = rollout.NotAfter(*since, now)
	}

	// It is the same turn.
	if isAdmitted {
		state.admitted.turnID, _ = turnOf(turn)
	}

	if isTried {
		state.tried.turnID, _ = turnOf(turn)
	}
}

// byClock returns when something was that this process remembers, by the clock as it is now: it may have been set since. The
// zero time stays.
func byClock(then, now time.Time) time.Time {
	if then.IsZero() {
		return then
	}

	return now.Add(-max(0, now.Sub(then))) // by the monotonic clock
}
