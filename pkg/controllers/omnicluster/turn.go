package omnicluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
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

// turnID tells the turns of a cluster apart.
type turnID struct {
	hash  string
	since time.Time // when the turn was admitted
}

// turnOf returns the turn that a status is about; false if there is none, or the status does not say since when.
func turnOf(status *v1alpha1.OmniClusterRollout) (turnID, bool) {
	if status == nil || status.AdmittedSince == nil {
		return turnID{}, false
	}

	return turnID{hash: status.Hash, since: status.AdmittedSince.Time}, true
}

// isOf reports whether it is the turn of a status.
func (t turnID) isOf(status *v1alpha1.OmniClusterRollout) bool {
	is, known := turnOf(status)

	return known && t.hash == is.hash && t.since.Equal(is.since)
}

// findGate returns the conditions under which the changes of the run's cluster may begin. They are those of the policy
// that selects the cluster, or of the policy that no longer selects it but still holds changes of it.
func (r *reconciler) findGate(ctx context.Context, s *scope) (consent.Gate, error) {
	if !r.options.Rollouts {
		return consent.Gate{}, nil
	}

	found, err := findSelection(ctx, s.cluster, r.client)
	if err != nil || found.Revision == "" {
		return consent.Gate{}, err
	}

	gate := r.gateOf(found, s.cluster)
	gate.Governed = isGoverned(s)

	return gate, nil
}

// findSelection returns the policies that concern a cluster, as the cache or the API server has them.
func findSelection(ctx context.Context, cluster *v1alpha1.OmniCluster, from client.Reader) (rollout.Selection, error) {
	list := &v1alpha1.OmniRolloutPolicyList{}
	if err := from.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return rollout.Selection{}, fmt.Errorf("list the rollout policies: %w", err)
	}

	return rollout.SelectionOf(list.Items, cluster), nil
}

// isGoverned reports whether the changes of a cluster wait for their turn: from the time when it was Ready first. A
// cluster that ran before a policy selected it is governed at once, and so is an adopted one, and one that Omni has as
// ours although the status does not say where: the status was lost.
func isGoverned(s *scope) bool {
	status := s.cluster.Status

	switch {
	case s.seen != nil && status.Endpoint == "" && s.owns(s.seen.live):
		return true
	case status.Rollout != nil && status.Rollout.Governed, s.seen != nil && s.seen.adopting, status.Adopting,
		apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady):
		return true
	case status.Rollout != nil && status.Rollout.Policy != "":
		return false
	default:
		return status.OmniClusterID != "" && !status.Starting
	}
}

// gateOf returns the conditions of the policies that concern a cluster.
func (r *reconciler) gateOf(found rollout.Selection, cluster *v1alpha1.OmniCluster) consent.Gate {
	gate := consent.Gate{
		Policy: found.Name, Revision: found.Revision, OnlyBefore: found.Left, Place: fmt.Sprintf("OmniRolloutPolicy %q", found.Name),
		Gates: func(v1alpha1.ChangeKind) bool { return true },
		Turn: consent.Turn{Started: byClock(r.started, r.options.Now()), Tried: r.triedAt(cluster), ReadyTime: r.options.RolloutReadyTime,
			ClocksDiffer: r.options.Skew.Now().TooLarge()},
	}
	gate.Turn.Healthy, gate.Turn.Since = r.healthy(cluster)

	// A turn ends, or is given back, by the policy that gave it, also while another one selects the cluster, too.
	if found.Object != nil {
		gate.Turn.Deadline, gate.Ticket = rollout.DeadlineOf(found.Object), ticketOf(found.Object, cluster)
	}

	switch {
	case len(found.Conflict) > 0:
		gate.Place = ""
		gate.Judge = waitFor(v1alpha1.ReasonPolicyConflict, fmt.Sprintf("the OmniRolloutPolicies %s select the cluster: change the selector of one of them",
			strings.Join(found.Conflict, ", ")))

		return gate
	case found.Policy == nil:
		gate.Judge = waitFor(v1alpha1.ReasonPolicyNotReady, fmt.Sprintf("the policy cannot be used: %v", found.Unreadable))

		return gate
	}

	gate.Gates = found.Policy.Gates

	if found.Left {
		gate.Judge = waitFor(v1alpha1.ReasonLeftPolicy, "the policy does not select the cluster any more: let another one select it, or override")

		return gate
	}

	if stage := found.Policy.StageOf(cluster); stage >= 0 {
		gate.Stage = found.Policy.Object.Spec.Stages[stage].Name
		gate.Place += ", " + found.Policy.StageName(stage)
	}

	gate.Judge = func(status v1alpha1.OmniClusterRollout) consent.Wait { return r.judge(cluster, found.Policy, status) }

	return gate
}

func waitFor(reason, message string) func(v1alpha1.OmniClusterRollout) consent.Wait {
	return func(v1alpha1.OmniClusterRollout) consent.Wait { return consent.Wait{Reason: reason, Message: message} }
}

// judge returns what the changes wait for by the policy. By a wrong clock no window and no freeze can be judged: the policy's own
// controller may not have noticed yet, and gave its tickets by that clock perhaps.
func (r *reconciler) judge(cluster *v1alpha1.OmniCluster, policy *rollout.Policy, status v1alpha1.OmniClusterRollout) consent.Wait {
	if differ := r.options.Skew.Now(); differ.TooLarge() {
		return consent.Wait{Reason: v1alpha1.ReasonPolicyNotReady, Message: differ.String() + ": nothing begins until they have agreed for a minute"}
	}

	member := policy.MemberOf(cluster, r.options.Well.Confirms(cluster))
	member.Rollout = status

	verdict := policy.Judge(member, r.options.Now())
	wait := consent.Wait{Reason: verdict.Reason, Message: verdict.Message}

	if !verdict.NotBefore.IsZero() {
		wait.NotBefore = &metav1.Time{Time: verdict.NotBefore.UTC()}
	}

	return wait
}

// ticketOf returns the cluster's ticket in the policy's status; nil if it has none.
func ticketOf(policy *v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) *v1alpha1.RolloutTicket {
	for _, ticket := range policy.Status.Admitted {
		if ticket.Cluster == cluster.Name && ticket.UID == string(cluster.UID) {
			return &ticket
		}
	}

	return nil
}

// noteWell writes into the status since when the cluster runs well. before is what the status had of Omni. A run that did
// not look at Omni changes nothing: the cluster may have run well all the time. The status that said when it did not may be
// lost, or an older one be restored, so this process keeps it, too.
func (r *reconciler) noteWell(s *scope, before *v1alpha1.OmniClusterRemoteStatus) {
	status := &s.cluster.Status
	if status.Rollout == nil || s.seen == nil || s.remote == nil {
		return
	}

	state := r.processStates.of(s.cluster)
	runs, _, _ := observe.Running(*s.remote)
	runs = runs && status.Omni != nil && !status.Starting

	// Omni was told to run other versions.
	other := before == nil || before.KubernetesVersion != withV(s.remote.KubernetesVersion) || before.TalosVersion != withV(s.remote.TalosVersion)
	if !runs || other {
		state.unwell = r.options.Now()
	}

	if runs {
		status.Rollout.WellSince = new(words.StoredTime(later(r.knownWell(s.cluster), state.unwell)))
	} else {
		status.Rollout.WellSince = nil
	}

	r.options.Well.Note(s.cluster)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}

// knownWell returns since when a cluster that runs well does so by its status; now if the status does not say it. The
// condition Ready of a suspended cluster is from before it was suspended.
func (r *reconciler) knownWell(cluster *v1alpha1.OmniCluster) time.Time {
	if since := cluster.Status.Rollout.WellSince; since != nil {
		return since.Time
	}

	now := r.options.Now()
	if since := rollout.ReadySince(cluster); !since.IsZero() && !cluster.Spec.Suspend && !since.After(now) {
		return since
	}

	return now
}

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
