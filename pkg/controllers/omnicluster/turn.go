package omnicluster

import (
	"context"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// turnWithoutPlan updates the cluster's turn in a run without a plan, for example while Omni does not answer: a turn whose
// deadline has passed is over, and a ticket goes back. Otherwise the cluster would keep its slot in the rollout for that
// long.
func (r *reconciler) turnWithoutPlan(ctx context.Context, s *scope) {
	state := stateOf(s.cluster.Status.Rollout)
	if s.synced != nil || state == "" || state == v1alpha1.RolloutFailed || !s.cluster.DeletionTimestamp.IsZero() {
		return
	}

	gate, err := r.findGate(ctx, s)
	if err != nil || !gate.Holds() {
		return // the next run asks again
	}

	if ended := consent.TurnWithoutPlan(s.cluster, gate, r.options.Now()); ended != nil {
		storeTurn(s, ended)
	}
}

// healthy reports whether a cluster runs well, and since when this process knows it with what was written. An older status
// may describe the time before an upgrade, if the controller died between the write to Omni and that of the status.
func (r *reconciler) healthy(cluster *v1alpha1.OmniCluster) (healthy bool, since time.Time) {
	healthy, since = rollout.Healthy(cluster, r.options.Well.Confirms(cluster))
	if healthy && since.IsZero() {
		since = r.options.Now() // the status does not say it yet
	}

	if written := cluster.Status.LastSyncTime; written != nil && written.After(since) {
		since = written.Time
	}

	return healthy, later(since, byClock(r.started, r.options.Now()))
}

// turnDue returns when the cluster has to be reconciled because of its turn: when changes may begin, when a turn may be
// over, and when it takes too long. If that time passed during the run, the next run is soon. But if there is no plan, it is
// 0: only a run with a plan finds the next time, and Omni may not answer for long.
func (r *reconciler) turnDue(cluster *v1alpha1.OmniCluster) time.Duration {
	status := cluster.Status.Rollout

	var due time.Time

	switch {
	case stateOf(status) == v1alpha1.RolloutHeld && status.NotBefore != nil:
		due = status.NotBefore.Time
	case stateOf(status) == v1alpha1.RolloutHeld && slices.Contains(
		[]string{v1alpha1.ReasonFrozen, v1alpha1.ReasonOutsideWindow, v1alpha1.ReasonAwaitingPromotion}, status.Reason):
		due = r.nextVerdict(cluster)
	case stateOf(status) == v1alpha1.RolloutAdmitted:
		due = r.turnEnds(cluster)
	}

	left := due.Sub(r.options.Now())
	if due.IsZero() || left <= 0 && !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionPlanned) {
		return 0
	}

	return max(left, time.Second)
}

// nextVerdict returns when what changes wait for may be something else, by the clock alone; zero if it is not known.
func (r *reconciler) nextVerdict(cluster *v1alpha1.OmniCluster) time.Time {
	object := r.policyOf(cluster)
	if object == nil {
		return time.Time{}
	}

	policy, err := rollout.New(object)
	if err != nil {
		return time.Time{}
	}

	return policy.Judge(policy.MemberOf(cluster, r.options.Well.Confirms(cluster)), r.options.Now()).Next
}

// turnEnds returns when the turn of an admitted cluster ends if nothing happens: because the cluster was Ready for long
// enough, or because the deadline is over. Zero if it is not known.
func (r *reconciler) turnEnds(cluster *v1alpha1.OmniCluster) time.Time {
	if rollout.IsPaused(cluster) {
		return time.Time{} // a run ends no turn of it
	}

	if healthy, since := r.healthy(cluster); healthy {
		if at := r.triedAt(cluster); at.After(since) {
			since = at
		}

		return since.Add(r.options.RolloutReadyTime)
	}

	object, since := r.policyOf(cluster), cluster.Status.Rollout.AdmittedSince
	if object == nil || since == nil {
		return time.Time{}
	}

	return since.Add(rollout.DeadlineOf(object))
}

// policyOf returns the policy that the cluster's status names; nil if it is not there.
func (r *reconciler) policyOf(cluster *v1alpha1.OmniCluster) *v1alpha1.OmniRolloutPolicy {
	object := &v1alpha1.OmniRolloutPolicy{}

	// From the cache, so it takes no time.
	err := r.client.Get(context.Background(), client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Status.Rollout.Policy}, object)
	if err != nil {
		return nil
	}

	return object
}

func stateOf(status *v1alpha1.OmniClusterRollout) v1alpha1.RolloutState {
	if status == nil {
		return ""
	}

	return status.State
}
