package omnicluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
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
