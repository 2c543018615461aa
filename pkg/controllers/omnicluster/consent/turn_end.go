package consent

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// giveBack ends the turn of a ticket that cannot be used.
func (d Decision) giveBack(next *v1alpha1.OmniClusterRollout) {
	if d.hasTicket(next) {
		d.end(next, d.facts.Gate.Ticket.Hash, v1alpha1.RolloutReturned)
	}
}

// hasTicket reports whether the cluster has a ticket whose turn has not ended.
func (d Decision) hasTicket(status *v1alpha1.OmniClusterRollout) bool {
	ticket := d.facts.Gate.Ticket

	return ticket != nil && !rollout.IsUsed(*ticket, *status)
}

// end records how a turn ended. An override of its changes is used up then, unless nothing had begun.
//
// The end is never earlier than the time of the ticket, even if the clock is: otherwise the ticket would stay for ever.
func (d Decision) end(next *v1alpha1.OmniClusterRollout, hash string, result v1alpha1.RolloutOutcome) {
	next.Last = &v1alpha1.RolloutResult{Hash: hash, Result: result, Time: d.now()}

	if ticket := d.facts.Gate.Ticket; ticket != nil && ticket.Hash == hash && next.Last.Time.Before(&ticket.Since) {
		next.Last.Time = ticket.Since
	}

	if result != v1alpha1.RolloutReturned {
		useOverride(next, hash, next.Last.Time)
	}
}

// lastTurn returns how the last turn ended, no later than now: a later end is from a clock that was ahead, and would keep the
// next ticket for the same changes away. But it is never earlier than the ticket that it has ended.
func (d Decision) lastTurn(before v1alpha1.OmniClusterRollout) *v1alpha1.RolloutResult {
	last := before.Last
	if last == nil || !last.Time.After(d.facts.Now) {
		return last
	}

	corrected := *last
	corrected.Time = d.now()

	if ticket := d.facts.Gate.Ticket; ticket != nil && rollout.IsUsed(*ticket, before) && corrected.Time.Before(&ticket.Since) {
		corrected.Time = ticket.Since
	}

	return &corrected
}

// useOverride records that an override of the changes of a hash has had its turn.
func useOverride(next *v1alpha1.OmniClusterRollout, hash string, at metav1.Time) {
	if next.Override == nil || next.Override.Hash != hash || next.Override.UsedTime != nil {
		return
	}

	used := next.Override.DeepCopy()
	used.UsedTime = &at
	next.Override = used
}

// turnResult returns how an admitted turn ends now, and its failure if it failed; an empty result means that it goes on.
func (d Decision) turnResult(gated []Item, before v1alpha1.OmniClusterRollout) (v1alpha1.RolloutOutcome, *v1alpha1.RolloutFailure) {
	left, begun := d.ofTurn(gated), d.turnHasBegun(before)

	switch failed := d.failed(left, before); {
	case failed != "":
		return v1alpha1.RolloutUnsuccessful, &v1alpha1.RolloutFailure{
			Hash: before.Hash, Left: d.hashOf(d.digestsOf(left)), Time: d.now(), Message: failed,
		}
	case !begun && !d.turnMayBegin(before):
		if d.mayHaveBegun(before) {
			return "", nil
		}

		return v1alpha1.RolloutReturned, nil
	case len(left) > 0, d.turnWaits(before), d.destroying(), !d.facts.Gate.Turn.wasWell(d.facts.Now):
		return "", nil
	case len(gated) > 0 && !begun: // nothing was written, and the documents now ask for other changes: it was not used
		return v1alpha1.RolloutReturned, nil
	default:
		return v1alpha1.RolloutDone, nil
	}
}

// turnWaits reports whether changes of a turn wait for documents, or to settle: they are not made, although no rollout holds them.
func (d Decision) turnWaits(before v1alpha1.OmniClusterRollout) bool {
	return slices.ContainsFunc(d.Items, func(item Item) bool {
		return (item.Hold == HoldDocuments || item.Hold == HoldSettling) && slices.Contains(before.Changes, d.salted(item.Change))
	})
}

// now returns the time of the run in the precision of the API.
func (d Decision) now() metav1.Time {
	return words.StoredTime(d.facts.Now)
}

// TurnWithoutPlan returns the new status.rollout of a cluster for which there is no plan; nil if nothing changes. A turn
// is over when its deadline has passed, and a cluster that does not run well hands its ticket back.
func TurnWithoutPlan(cluster *v1alpha1.OmniCluster, gate Gate, now time.Time) *v1alpha1.OmniClusterRollout {
	d := Decision{facts: Facts{Cluster: cluster, Gate: gate, Now: now}, holdOfAll: Facts{Cluster: cluster}.holdOfAll()}
	before := d.before()
	next := before.DeepCopy()

	switch {
	case gate.Turn.Healthy:
		return nil
	case before.State == v1alpha1.RolloutHeld && d.hasTicket(next):
		d.giveBack(next)
	case before.State == v1alpha1.RolloutAdmitted && d.holdOfAll == HoldNone && gate.Turn.isOverdue(before.AdmittedSince, now):
		d.endOverdue(next, before)
	default:
		return nil
	}

	return next
}

// endOverdue ends a turn without a plan. The changes stay listed, so that the next plan does not take them for the fix
// of what failed.
func (d Decision) endOverdue(next *v1alpha1.OmniClusterRollout, before v1alpha1.OmniClusterRollout) {
	next.State, next.Reason, next.AdmittedSince, next.HeldSince = v1alpha1.RolloutFailed, "", nil, nil
	next.Failure = &v1alpha1.RolloutFailure{Hash: before.Hash, Time: d.now(), Message: d.facts.Gate.Turn.overdueMessage()}
	d.end(next, before.Hash, v1alpha1.RolloutUnsuccessful)
}

// rememberLeft adds the changes that are left of a turn that endOverdue ended.
func (d Decision) rememberLeft(next *v1alpha1.OmniClusterRollout, before v1alpha1.OmniClusterRollout) {
	if next.Failure == nil || next.Failure.Left != "" || before.State != v1alpha1.RolloutFailed {
		return
	}

	for _, digest := range next.Changes {
		if !slices.Contains(before.Changes, digest) {
			return
		}
	}

	failure := *next.Failure
	failure.Left = next.Hash
	next.Failure = &failure
}

// succeeded reports whether a turn that endOverdue ended did what it was to do: Omni runs the cluster, and has what the turn wrote.
// Another change is no fix of it then, and waits as any other.
func (d Decision) succeeded(gated []Item, before v1alpha1.OmniClusterRollout) bool {
	turn, failure := d.facts.Gate.Turn, before.Failure

	return failure != nil && failure.Left == "" && failure.Message == turn.overdueMessage() &&
		turn.runs() && turn.Failed == "" && len(d.ofTurn(gated)) == 0 && !d.destroying()
}

// runs reports whether the cluster runs well, or will be known to when the status has what Omni says.
func (t Turn) runs() bool { return t.Healthy || t.Recovered }

// isOverdue reports whether a turn that began at a time has taken longer than the deadline.
func (t Turn) isOverdue(since *metav1.Time, now time.Time) bool {
	return since != nil && t.Deadline > 0 && !t.ClocksDiffer && now.Sub(since.Time) >= t.Deadline
}

// isOfEarlierProcess reports whether a turn that was admitted at a time was admitted by an earlier process.
func (t Turn) isOfEarlierProcess(admitted *metav1.Time) bool {
	return admitted != nil && t.Started.After(admitted.Time)
}

// wasWell reports whether the cluster runs well, and has for the ready time since the changes were tried last: the status
// may be from before that.
func (t Turn) wasWell(now time.Time) bool {
	since := t.Since
	if t.Tried.After(since) {
		since = t.Tried
	}

	return t.Healthy && !t.ClocksDiffer && now.Sub(since) >= t.ReadyTime
}

func (t Turn) overdueMessage() string { return fmt.Sprintf("not Ready within %s", t.Deadline) }

// stopped handles a cluster that is suspended, locked, only observed, or left alone in a namespace that is being deleted,
// which gets no turn. What was written goes on in Omni; a turn in which nothing was written is over. What was held stays listed.
func (d Decision) stopped(next *v1alpha1.OmniClusterRollout, before v1alpha1.OmniClusterRollout) *v1alpha1.OmniClusterRollout {
	if d.turnHasBegun(before) || d.mayHaveBegun(before) {
		inTurn(next, before)

		return next
	}

	if before.State == v1alpha1.RolloutAdmitted {
		d.end(next, before.Hash, v1alpha1.RolloutReturned)
	}

	d.giveBack(next)
	next.Changes = d.stillHeld()

	return next
}

// inTurn records that a turn goes on.
func inTurn(next *v1alpha1.OmniClusterRollout, before v1alpha1.OmniClusterRollout) {
	next.State, next.Hash, next.Kinds, next.Changes = before.State, before.Hash, before.Kinds, before.Changes
	next.AdmittedSince, next.HeldSince, next.ChangedSince = before.AdmittedSince, before.HeldSince, before.ChangedSince
}
