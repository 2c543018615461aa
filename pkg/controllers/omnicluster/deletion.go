package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	// deletionPoll is how often a deletion that waits for Omni is reconciled without a trigger. One that is blocked has the
	// interval of its cluster.
	deletionPoll = 30 * time.Second
)

// forgetPhases sets the conditions of the earlier phases to Unknown: a deletion no longer updates them, and Available
// must not stay true while machines leave.
func (r *reconciler) forgetPhases(cluster *v1alpha1.OmniCluster) {
	for _, phase := range r.kind().Phases {
		if phase.Condition == "" {
			continue
		}

		apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: phase.Condition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDeleting,
			Message: "not looked at while the object is being deleted", ObservedGeneration: cluster.Generation,
		})
	}
}

// delete carries out the next step of a deletion.
func (r *reconciler) delete(ctx context.Context, s *scope) (loop.Outcome, error) {
	session, err := r.findSession(ctx, s)
	if err == nil && session.Continues() {
		session, err = r.readCluster(ctx, s)
	}

	if err != nil {
		return loop.Outcome{}, err
	}

	if session.Postpones() {
		return session, nil
	}

	facts := r.deletionFacts(s, session)
	next, outcome := facts.Decide()

	// Nothing is released on the evidence of the copy: it may not show the cluster yet.
	if next == consent.StepLetGo && session.Continues() && !facts.Observe {
		facts.Live, err = s.lease.InspectLive(ctx, s.name)

		switch {
		case err != nil && !facts.Orphan:
			return loop.Outcome{}, errors.New(omni.Message(err))
		case err != nil:
			facts.Connected = loop.Wait(deletionPoll, v1alpha1.ReasonConnectionNotReady, "%s", omni.Message(err))
			facts.Outage = r.outage(s)
		}

		if next, outcome = facts.Decide(); next == consent.StepDestroy {
			// The destruction is planned from the copy, which would have nothing to destroy.
			return loop.Wait(time.Second, v1alpha1.ReasonDeleting, "%s; the local copy of Omni's resources does not show it yet", outcome.Message()), nil
		}
	}

	switch next {
	case consent.StepLetGo:
		if session.Continues() && facts.Owned() && !facts.Live.TearingDown {
			outcome = r.nameLeaving(ctx, s, outcome)
		}

		return r.letGo(s, outcome), nil
	case consent.StepUnmark:
		return r.unmark(ctx, s, outcome)
	case consent.StepDestroy:
		return r.destroy(ctx, s)
	default:
		return outcome, nil
	}
}

// deletionFacts returns the facts that decide a deletion.
func (r *reconciler) deletionFacts(s *scope, session loop.Outcome) consent.Deletion {
	status := s.cluster.Status

	facts := consent.Deletion{
		Claim: claimOf(s), SecondWriter: r.secondWriter(s), Orphan: s.cluster.Spec.DeletePolicy.Orphan,
		Observe:    s.cluster.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve,
		EverSynced: status.Endpoint != "" || status.OmniClusterID != "", Connected: session, Behind: s.behind,
		Unmarking: r.processStates.of(s.cluster).unmarking,
		Blocked:   apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDeletionBlocked),
	}

	switch reached := session.Continues() || s.behind; {
	case !reached:
		facts.Outage = r.outage(s)
	case !facts.Orphan: // with orphan, taking the mark off tells whether Omni can be used
		r.processStates.of(s.cluster).outage = time.Time{}
	}

	return facts
}

// outage returns how long this deletion has had no session with Omni.
func (r *reconciler) outage(s *scope) time.Duration {
	state, now := r.processStates.of(s.cluster), r.options.Now()
	if state.outage.IsZero() {
		state.outage = now
	}

	return now.Sub(state.outage)
}

// letGo announces what stays in Omni, once, because the finalizer is removed right after. Another object with the same
// cluster is planned again when this one is gone, and waits anew for what it needs.
func (r *reconciler) letGo(s *scope, outcome loop.Outcome) loop.Outcome {
	if s.lease != nil {
		s.lease.LetGo(s.name)
	}

	r.events.Eventf(s.cluster, nil, corev1.EventTypeNormal, "Released", "Delete", "%s", outcome.Message())

	return outcome
}

// unmark removes our mark from a cluster that stays.
func (r *reconciler) unmark(ctx context.Context, s *scope, outcome loop.Outcome) (loop.Outcome, error) {
	if err := plan.RemoveMarks(ctx, s.lease.Live(), s.name, s.isMark); err != nil {
		r.processStates.of(s.cluster).unmarking = true

		if r.outage(s) < consent.OutageTimeout {
			return loop.Wait(5*time.Second, v1alpha1.ReasonDeleting, "the mark could not be taken off yet: %s", omni.Message(err)), nil
		}

		outcome = consent.Released("cluster %q stays in Omni, and may still have this object's mark: %s", s.name, omni.Message(err))
	}

	return r.letGo(s, r.nameLeaving(ctx, s, outcome)), nil
}

// destroy advances the cluster's destruction as far as possible now, and returns what it waits for.
func (r *reconciler) destroy(ctx context.Context, s *scope) (loop.Outcome, error) {
	if outcome, err := r.confirmDeletion(ctx, s); err != nil || !outcome.Continues() {
		return outcome, err
	}

	planned, err := s.lease.PlanDelete(ctx, s.name, plan.DeleteOptions{DestroyMachines: s.cluster.Spec.DeletePolicy.DestroyMachines})
	if err != nil {
		return explainDestroy(err)
	}

	// The local copy changes meanwhile: is the cluster still ours?
	live, err := omni.Inspect(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	if live.Exists && (!s.owns(live) || live.UUID != s.seen.live.UUID) {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q got another owner or ID meanwhile", s.name), nil
	}

	result, err := s.lease.Apply(ctx, planned, plan.ApplyOptions{Consent: plan.EveryChange, Confirm: s.confirmBy(r.confirmDeletion)})
	r.announce(s.cluster, result.Taken(), false)

	if unconfirmed := new(unconfirmedError); errors.As(err, &unconfirmed) {
		return unconfirmed.outcome, unconfirmed.err
	}

	if err != nil {
		return explainDestroy(err)
	}

	if err := r.catchUp(ctx, s); err != nil {
		return loop.Wait(time.Second, v1alpha1.ReasonDeleting, "cluster %q is being destroyed in Omni", s.name), nil
	}

	progress, err := observe.Progress(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	if progress.Gone {
		return r.confirmGone(ctx, s)
	}

	return describeProgress(s.name, progress, s.cluster.Spec.DeletePolicy.DestroyMachines, r.options.Now()), nil
}

// confirmGone releases the object once Omni itself no longer has a cluster of ours.
func (r *reconciler) confirmGone(ctx context.Context, s *scope) (loop.Outcome, error) {
	live, err := s.lease.InspectLive(ctx, s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	if s.owns(live) {
		return loop.Wait(time.Second, v1alpha1.ReasonDeleting, "cluster %q still is in Omni", s.name), nil
	}

	return r.letGo(s, consent.Released("cluster %q was destroyed in Omni", s.name)), nil
}

// explainDestroy converts the error of a destruction into the outcome for the user.
func explainDestroy(err error) (loop.Outcome, error) {
	message := omni.Message(err)

	switch class := omni.Classify(err); {
	case errors.Is(err, omni.ErrClusterLocked):
		return loop.Block(0, v1alpha1.ReasonRemoteLocked, "%s: unlock it there, or set spec.deletePolicy.orphan", message), nil
	case class == omni.ClassRefused:
		return loop.Block(0, v1alpha1.ReasonRefused, "%s", message), nil
	case class == omni.ClassDenied:
		return loop.Block(0, v1alpha1.ReasonPermissionDenied, "%s", message), nil
	case class == omni.ClassConflict, class == omni.ClassNotReady, class == omni.ClassGone:
		return loop.Wait(time.Second, v1alpha1.ReasonDeleting, "%s", message), nil
	case class == omni.ClassUnauthenticated, class == omni.ClassKeyExpired, class == omni.ClassKeyInvalid:
		return loop.Block(5*time.Second, v1alpha1.ReasonConnectionNotReady, "%s", message), nil
	default:
		return loop.Outcome{}, errors.New(message)
	}
}

// blockedAfter is how long machines may take to leave before a deletion counts as blocked. Omni takes about as long to
// notice that a machine has died (275 s, measured).
const blockedAfter = 5 * time.Minute

// describeProgress returns the message about what a destruction waits for, since when, and what helps. The destruction
// counts as blocked when a machine cannot be reached, or when it takes long.
func describeProgress(name string, progress observe.DeleteProgress, destroyMachines bool, now time.Time) loop.Outcome {
	message := fmt.Sprintf("cluster %q is being destroyed in Omni%s", name, since(progress.Since))

	switch {
	case len(progress.Blockers) > 0:
		message += "; it waits for " + nameBlockers(progress.Blockers)
	case len(progress.Finalizers) > 0:
		message += "; it waits for Omni's own clean-up: " + consent.Names(progress.Finalizers)
	}

	long := progress.TearingDown && now.Sub(progress.Since) > blockedAfter

	unreachable, poweredOff := countUnreachable(progress.Blockers), machinesPoweredOff(progress.Blockers)

	switch silent := unreachable - len(poweredOff); {
	case silent > 0 && destroyMachines:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. A machine that is not connected cannot be reset; because spec.deletePolicy.destroyMachines is set it is removed from Omni "+
				"as it is, as soon as Omni counts it as disconnected (about 5 minutes after it fell silent)%s", message, aboutPoweredOff(poweredOff))
	case silent > 0:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. A machine that is not connected cannot be reset, and Omni waits for it without end: bring it back, "+
				"or set spec.deletePolicy.destroyMachines: true to have it removed from Omni as it is%s", message, aboutPoweredOff(poweredOff))
	case unreachable > 0:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. A machine that is not connected cannot be reset%s", message, aboutPoweredOff(poweredOff))
	case long && len(progress.Blockers) > 0:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. All of them are connected: look at what they do in Omni", message)
	case long:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines, "%s", message)
	}

	return loop.Wait(deletionPoll, v1alpha1.ReasonDeleting, "%s", message)
}

// leavingMachines returns the end of a message that names the machines that leave, and says what helps.
func leavingMachines(machines []observe.Blocker) string {
	if len(machines) == 0 {
		return ""
	}

	text := "; leaving: " + nameBlockers(machines)
	if countUnreachable(machines) > 0 {
		text += ". A machine that is not connected cannot be reset, and Omni waits for it: bring it back, or remove it in Omni"
	}

	if slices.ContainsFunc(machines, func(machine observe.Blocker) bool { return machine.Connected && machine.Waits }) {
		text += ". Omni has not begun with each of them: it takes a machine out of the control plane while the load balancer is healthy and etcd " +
			"keeps its quorum without it (look at etcd on the others), and one out of a worker set when its turn comes"
	}

	return text
}

// nameLeaving adds to the message about a cluster that stays in Omni the machines that it loses: disconnected ones, whose
// removal this deletion requested before it was told to keep the cluster, and those that left already. It asks Omni itself:
// nobody says it later, and the local copy may not show yet what was requested a moment ago.
func (r *reconciler) nameLeaving(ctx context.Context, s *scope, outcome loop.Outcome) loop.Outcome {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	machines, err := observe.Leaving(ctx, s.lease.Live(), s.name)
	if err != nil || len(machines) == 0 {
		return outcome
	}

	return consent.Released("%s; these leave it all the same, as was requested before: %s", outcome.Message(), nameBlockers(machines))
}

// nameBlockers lists the first machines that something waits for.
func nameBlockers(blockers []observe.Blocker) string {
	named := make([]string, 0, len(blockers))

	for _, blocker := range blockers {
		text := "machine " + blocker.Machine
		if !blocker.Connected {
			text += " (not connected)"
		}

		named = append(named, text+since(blocker.Since))
	}

	return consent.Names(named)
}

func since(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return " since " + words.Time(moment)
}

// machinesPoweredOff returns the machines that Omni never counts as disconnected while they are off.
func machinesPoweredOff(blockers []observe.Blocker) []string {
	var off []string

	for _, blocker := range blockers {
		if blocker.PoweredOff {
			off = append(off, blocker.Machine)
		}
	}

	return off
}

// aboutPoweredOff returns the end of a message that says what helps with machines that are powered off; empty without any.
func aboutPoweredOff(machines []string) string {
	if len(machines) == 0 {
		return ""
	}

	return fmt.Sprintf(". Omni knows these as powered off and does not count them as disconnected, so that destroyMachines does not remove them: %s. "+
		"Power such a machine on, or take it out of Omni: omnictl delete link UUID", consent.Names(machines))
}

func countUnreachable(blockers []observe.Blocker) int {
	return len(slices.DeleteFunc(slices.Clone(blockers), func(blocker observe.Blocker) bool { return blocker.Connected }))
}
