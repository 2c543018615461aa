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

// arrivalTime is how long a write whose call has failed may take to arrive, and to be seen.
const arrivalTime = time.Minute

// Turn has the state of a cluster from which follows how its turn ends.
type Turn struct {
	// Healthy is true if the cluster runs well, and Since is since when. Since is never before this process started:
	// the status may be older than the start of the changes in Omni, and may not have the time of the last write.
	Healthy bool
	Since   time.Time
	// Recovered is true if Omni says that the cluster runs and the status does not, because nobody has looked since. It is
	// Healthy when the status has that.
	Recovered bool
	// Failed is the failure that Omni reports; empty if there is none.
	Failed string
	// Deadline is how long a turn may take.
	Deadline time.Duration
	// ClocksDiffer is true if nobody knows what time it is: a turn neither fails at its deadline nor has lasted for the ready time.
	ClocksDiffer bool
	// Started is when this process began to look at clusters. A write of an earlier process may not be in the status.
	Started time.Time
	// Tried is when this process last tried to make the changes of the turn; zero if it has not. Omni may have taken
	// them even if the call failed, and the status of that run may be lost.
	Tried time.Time
	// ReadyTime is how long the cluster has to be Ready before the turn counts as done. A cluster that was Ready before
	// the changes may still be shown as Ready for a moment after them.
	ReadyTime time.Duration
}

// turn returns the new state of the cluster's turn. gated are the changes that need a turn, and that nothing else but an upgrade
// keeps from being made now.
func (d Decision) turn(gated []Item) *admission {
	before, gate := d.before(), d.facts.Gate
	next := &v1alpha1.OmniClusterRollout{
		Governed: gate.Governed, Policy: gate.Policy, Stage: gate.Stage, WellSince: before.WellSince,
		Last: d.lastTurn(before), Failure: before.Failure, Override: before.Override,
	}

	// A failure under another policy does not count for this one.
	if before.Policy != "" && gate.Policy != "" && before.Policy != gate.Policy {
		next.Failure = nil
	}

	switch {
	case !gate.Holds(): // no policy is concerned any more
		next.Governed, next.Failure = before.Governed, nil
		useOverride(next, before.Hash, d.now()) // its changes begin now

		return &admission{next: next}
	case d.holdOfAll != HoldNone, len(d.leftAlone()) > 0: // it asks for nothing, and counts nowhere
		return &admission{next: d.stopped(next, before)}
	case before.State == v1alpha1.RolloutAdmitted:
		result, failure := d.turnResult(gated, before)
		if result == "" {
			return d.goOn(next, gated, before)
		}

		d.end(next, before.Hash, result)

		if result != v1alpha1.RolloutReturned { // a turn that was not used says nothing about an earlier failure
			next.Failure = failure
		}
	case before.State == v1alpha1.RolloutFailed && d.succeeded(gated, before):
		next.Failure = nil
	}

	return d.ask(next, gated, before)
}

// goOn continues a turn. Its changes may be made, unless they have lost their ticket and only a write of them may still arrive.
func (d Decision) goOn(next *v1alpha1.OmniClusterRollout, gated []Item, before v1alpha1.OmniClusterRollout) *admission {
	inTurn(next, before)

	a := &admission{next: next, admits: d.turnHasBegun(before) || d.turnMayBegin(before)}
	if !a.admits || slices.ContainsFunc(gated, func(item Item) bool { return !a.has(d.salted(item.Change)) }) {
		next.Reason = v1alpha1.ReasonTurnNotOver
	}

	return a
}

// turnHasBegun reports whether changes of the turn were made. Omni has such a change, or is destroying what it removes, so it
// is no longer among those to make. That alone proves nothing: the documents may ask for something else by now. So this
// process must have written since, or have tried to, or be a later one than the one that could have.
func (d Decision) turnHasBegun(before v1alpha1.OmniClusterRollout) bool {
	turn := d.facts.Gate.Turn
	if before.State != v1alpha1.RolloutAdmitted || !d.wrote(before) && turn.Tried.IsZero() && !turn.isOfEarlierProcess(before.AdmittedSince) {
		return false
	}

	toMake := d.toMake()

	return slices.ContainsFunc(before.Changes, func(digest string) bool { return !slices.Contains(toMake, digest) })
}

// wrote reports whether the status shows that something was written to Omni in this turn. A process that died right
// after the write could not record it.
func (d Decision) wrote(before v1alpha1.OmniClusterRollout) bool {
	written := d.facts.Cluster.Status.LastSyncTime

	return written != nil && before.AdmittedSince != nil && !written.Before(before.AdmittedSince)
}

// mayHaveBegun reports whether a write of the turn may still arrive in Omni, or in the copy: its call may have ended
// before Omni was done with it. The turn keeps its slot that long.
func (d Decision) mayHaveBegun(before v1alpha1.OmniClusterRollout) bool {
	tried := d.facts.Gate.Turn.Tried

	return before.State == v1alpha1.RolloutAdmitted && !tried.IsZero() && d.facts.Now.Sub(tried) < arrivalTime
}

// turnMayBegin reports whether a turn in which nothing was made yet may begin.
func (d Decision) turnMayBegin(status v1alpha1.OmniClusterRollout) bool {
	return IsOverridden(d.facts.Cluster, status.Override, status.Hash) || d.facts.Gate.isTurn(status)
}

// MayBegin reports whether the decision's turn may still begin, with the cluster and the conditions of its policies as the
// API server has them now. Changes that have begun go on, whatever becomes of the policy and the ticket.
func (d Decision) MayBegin(now *v1alpha1.OmniCluster, gate Gate) bool {
	status := *d.Rollout()

	return d.HasBegun() || isOverriddenNow(now, status) || gate.Policy == status.Policy && gate.isTurn(status)
}

// isOverriddenNow reports whether the API has an override for the changes of a decision, and the decision does not say that
// it was used.
func isOverriddenNow(now *v1alpha1.OmniCluster, decided v1alpha1.OmniClusterRollout) bool {
	isUsed := decided.Override != nil && decided.Override.UsedTime != nil

	return !isUsed && now.Status.Rollout != nil && IsOverridden(now, now.Status.Rollout.Override, decided.Hash)
}

// isTurn reports whether the ticket is for the changes of a status, in the cluster's stage, and nothing else holds them.
func (g Gate) isTurn(status v1alpha1.OmniClusterRollout) bool {
	ticket := g.Ticket

	return ticket != nil && ticket.Hash == status.Hash && ticket.Stage == g.Stage && !rollout.IsUsed(*ticket, status) && g.Judge(status).Reason == ""
}

// failed returns why a turn failed; empty if it did not.
func (d Decision) failed(left []Item, before v1alpha1.OmniClusterRollout) string {
	turn := d.facts.Gate.Turn

	for _, refusal := range d.facts.Cluster.Status.Refusals {
		if slices.ContainsFunc(left, func(item Item) bool { return item.Change.Type == refusal.Type && item.Change.ID == refusal.ID }) {
			return refusal.Message // it names the change, and says that Omni refuses it
		}
	}

	switch {
	case turn.Failed != "":
		return turn.Failed
	case turn.runs() && len(left) == 0 && !d.destroying(): // it runs as asked, though nobody may have looked in time
		return ""
	case turn.isOverdue(before.AdmittedSince, d.facts.Now):
		return turn.overdueMessage()
	default:
		return ""
	}
}

// destroying reports whether Omni is destroying resources that the turn removed.
func (d Decision) destroying() bool {
	return slices.ContainsFunc(d.Items, func(item Item) bool {
		return item.Change.Kind == v1alpha1.ChangeMachineRemoval && (item.State == Requested || item.Change.TearingDown)
	})
}

// ask records what the changes that need a turn wait for, or lets them begin.
func (d Decision) ask(next *v1alpha1.OmniClusterRollout, gated []Item, before v1alpha1.OmniClusterRollout) *admission {
	gate, asked := d.facts.Gate, gated
	if gate.OnlyBefore {
		asked = slices.DeleteFunc(slices.Clone(asked), func(item Item) bool { return !d.wasHeld(item.Change) })
	}

	next.Changes = d.digestsOf(asked)
	if len(asked) == 0 || gate.OnlyBefore {
		next.Changes = listed(append(next.Changes, d.stillHeld()...))
	}

	if len(asked) == 0 {
		return &admission{next: d.askNothing(next)}
	}

	next.Hash, next.Kinds = d.hashOf(next.Changes), kindsOf(asked)
	d.rememberLeft(next, before)

	now := d.now()
	next.State = v1alpha1.RolloutHeld
	countFrom(now, next, before)

	if d.turnMayBegin(*next) {
		next.State, next.AdmittedSince = v1alpha1.RolloutAdmitted, &now

		return &admission{next: next, admits: true}
	}

	d.giveBack(next)

	wait := gate.Judge(*next)
	if wait.Reason == "" {
		wait = Wait{Reason: v1alpha1.ReasonWaitingForTurn, Message: "as many clusters of the stage are at work as may be, or the policy has yet to look at this one"}
	}

	next.Reason, next.NotBefore = wait.Reason, wait.NotBefore

	return &admission{next: next, message: wait.Message}
}

// askNothing gives the turn back. A failure stays until the cluster is healthy.
func (d Decision) askNothing(next *v1alpha1.OmniClusterRollout) *v1alpha1.OmniClusterRollout {
	d.giveBack(next)

	switch {
	case next.Failure == nil:
	case d.facts.Gate.Turn.Healthy:
		next.Failure = nil
	default:
		next.State, next.Hash = v1alpha1.RolloutFailed, next.Failure.Hash
	}

	return next
}

// countFrom keeps since when something is held, and since when what is held has nothing new in it.
func countFrom(now metav1.Time, next *v1alpha1.OmniClusterRollout, before v1alpha1.OmniClusterRollout) {
	next.HeldSince, next.ChangedSince = before.HeldSince, before.ChangedSince

	if next.HeldSince == nil {
		next.HeldSince = &now
	}

	if next.ChangedSince == nil || slices.ContainsFunc(next.Changes, func(digest string) bool { return !slices.Contains(before.Changes, digest) }) {
		next.ChangedSince = &now
	}
}

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
