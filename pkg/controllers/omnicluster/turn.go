package omnicluster

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// mayStillBegin asks the API server, without the cache, whether the changes of a decision may still begin: the cache may lack a
// new policy, or a new label of the cluster. A new cluster is not asked about: no policy holds its changes.
func (r *reconciler) mayStillBegin(ctx context.Context, s *scope, decision consent.Decision) (bool, error) {
	begins, withoutTurn := decision.Begins(), r.options.Rollouts && isGoverned(s) && decision.BeginsWithoutTurn()
	if !begins && !withoutTurn {
		return true, nil
	}

	now := &v1alpha1.OmniCluster{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s.cluster), now); err != nil {
		return false, client.IgnoreNotFound(err)
	}

	if now.UID != s.cluster.UID || now.Generation != s.cluster.Generation {
		return false, nil
	}

	found, err := findSelection(ctx, now, r.live)
	if err != nil {
		return false, err
	}

	if withoutTurn && found.Revision != s.gate.Revision {
		return false, nil
	}

	return !begins || decision.MayBegin(now, r.gateOf(found, now)), nil
}

// tried is the last time when this process tried to make the changes of a turn.
type tried struct {
	turnID
	at time.Time
}

// noteTried remembers that the changes of a cluster's turn are about to be made. It counts whatever comes of the call:
// Omni may take the changes although the call fails, and the status of this run may be lost.
func (r *reconciler) noteTried(cluster *v1alpha1.OmniCluster, turn *v1alpha1.OmniClusterRollout) {
	if id, known := turnOf(turn); known { // else somebody wrote the status by hand
		r.processStates.of(cluster).tried = tried{turnID: id, at: r.options.Now()}
	}
}

// triedAt returns when this process last tried to make the changes of the turn that the status has; zero if it has not.
func (r *reconciler) triedAt(cluster *v1alpha1.OmniCluster) time.Time {
	last := r.processStates.of(cluster).tried
	if !last.isOf(cluster.Status.Rollout) {
		return time.Time{}
	}

	return last.at
}

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

// turnNow returns the state of the cluster's turn with what Omni says now: the status may be from before a write, and a
// later one may have been lost.
func (r *reconciler) turnNow(ctx context.Context, s *scope) (consent.Turn, error) {
	turn, status := s.gate.Turn, s.cluster.Status.Rollout
	if stateOf(status) != v1alpha1.RolloutAdmitted && (status == nil || status.Failure == nil) {
		return turn, nil // nothing is at work, and nothing failed
	}

	observed, err := observe.Observe(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return turn, errors.New(omni.Message(err))
	}

	runs, _, _ := observe.Running(observed)
	turn.Healthy = turn.Healthy && runs
	// The run that sees the cluster run stores since when, whatever else keeps it from being Ready.
	turn.Recovered = runs && (status == nil || status.WellSince == nil) && !apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionAvailable)

	// A failure from before the turn is that of the changes before. The status of Available may be older than both.
	if status.AdmittedSince != nil {
		if message := observe.GivenUp(observed, r.upgradesBefore(s.cluster)); message != "" {
			turn.Failed = v1alpha1.ReasonUpgradeFailed + ": " + message
		}
	}

	return turn, nil
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

// announceTurn sends the events about the cluster's turn, and counts what began out of turn.
func (r *reconciler) announceTurn(cluster *v1alpha1.OmniCluster, before, after *v1alpha1.OmniClusterRollout) {
	was, is := stateOf(before), stateOf(after)
	if after == nil {
		return
	}

	if failure := after.Failure; failure != nil && (before == nil || before.Failure == nil || !before.Failure.Time.Equal(&failure.Time)) {
		r.events.Eventf(cluster, nil, corev1.EventTypeWarning, "RolloutFailed", "Rollout", "%s", failure.Message)
	}

	if was == is && (before == nil || before.Hash == after.Hash) {
		return
	}

	switch is {
	case v1alpha1.RolloutHeld:
		if was != is {
			r.events.Eventf(cluster, nil, corev1.EventTypeNormal, "Held", "Rollout", "changes wait for their turn: %s", after.Reason)
		}
	case v1alpha1.RolloutAdmitted:
		reason, note := "Admitted", "changes may begin"
		if consent.IsOverridden(cluster, after.Override, after.Hash) {
			reason, note = "RolloutOverridden", "changes begin out of turn: "+overrideText(after)
			r.options.Overrides.CountOverride(types.NamespacedName{Namespace: cluster.Namespace, Name: after.Policy})
		}

		r.events.Eventf(cluster, nil, corev1.EventTypeNormal, reason, "Rollout", "%s", note)
	case v1alpha1.RolloutFailed:
	}
}

func overrideText(status *v1alpha1.OmniClusterRollout) string {
	if status.Override == nil {
		return "by the annotation " + v1alpha1.AnnotationRolloutOverride
	}

	return status.Override.User + ": " + status.Override.Reason
}

func stateOf(status *v1alpha1.OmniClusterRollout) v1alpha1.RolloutState {
	if status == nil {
		return ""
	}

	return status.State
}
