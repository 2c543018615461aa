package omnicluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

const (
	// deletionPoll is how often a deletion looks again without being woken.
	deletionPoll = 30 * time.Second
)

// forgetPhases makes unknown what the phases found before the deletion: nobody
// looks at that any more, and Available must not stay true while machines go.
func (r *reconciler) forgetPhases(cluster *v1alpha1.OmniCluster) {
	for _, phase := range r.kind().Phases {
		apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: phase.Condition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDeleting,
			Message: "not looked at while the object is being deleted", ObservedGeneration: cluster.Generation,
		})
	}
}

// delete does the next step of a deletion.
func (r *reconciler) delete(ctx context.Context, s *scope) (loop.Outcome, error) {
	session, err := r.findSession(ctx, s)
	if err == nil && session.Continues() {
		session, err = r.look(ctx, s)
	}

	if err != nil {
		return loop.Outcome{}, err
	}

	status := s.cluster.Status

	if session.Postpones() {
		return session, nil
	}

	decision := deletion{
		name: s.name, uid: string(s.cluster.UID),
		orphan:     s.cluster.Spec.DeletePolicy.Orphan,
		observe:    s.cluster.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve,
		everSynced: status.Endpoint != "" || status.OmniClusterID != "",
		recorded:   status.Endpoint, session: session, live: s.live,
		knownID: status.OmniClusterID, recreate: s.cluster.Annotations[v1alpha1.AnnotationRecreate],
		since: r.options.Now().Sub(s.cluster.DeletionTimestamp.Time),
	}

	if s.connection != nil {
		decision.current = s.connection.Spec.Endpoint
	}

	next, outcome := decision.decide()

	// Nothing is let go by what a copy says: it may not show the cluster yet.
	if next == stepLetGo && session.Continues() && !decision.observe {
		decision.live, err = s.lease.InspectLive(ctx, s.name, markKeys())

		switch {
		case err != nil && !decision.orphan:
			return loop.Outcome{}, errors.New(omni.Message(err))
		case err != nil:
			decision.session = loop.Wait(deletionPoll, v1alpha1.ReasonConnectionNotReady, "%s", omni.Message(err))
		}

		next, outcome = decision.decide()
	}

	switch next {
	case stepLetGo:
		return r.letGo(s, outcome), nil
	case stepUnmark:
		return r.unmark(ctx, s, outcome)
	case stepDestroy:
		return r.destroy(ctx, s)
	default:
		return outcome, nil
	}
}

// letGo tells what stays behind, once, because the finalizer goes right after.
func (r *reconciler) letGo(s *scope, outcome loop.Outcome) loop.Outcome {
	r.events.Eventf(s.cluster, nil, corev1.EventTypeNormal, "Released", "Delete", "%s", outcome.Message())

	return outcome
}

// unmark takes our mark off a cluster that stays.
func (r *reconciler) unmark(ctx context.Context, s *scope, outcome loop.Outcome) (loop.Outcome, error) {
	if _, err := s.lease.RemoveMarks(ctx, s.name, markKeys(), string(s.cluster.UID)); err != nil {
		if r.options.Now().Sub(s.cluster.DeletionTimestamp.Time) < patience {
			return loop.Wait(5*time.Second, v1alpha1.ReasonDeleting, "the mark could not be taken off yet: %s", omni.Message(err)), nil
		}

		outcome = released("cluster %q stays in Omni with this object's mark: %s", s.name, omni.Message(err))
	}

	return r.letGo(s, outcome), nil
}

// destroy advances the cluster's destruction by what can be done now, and names
// what it waits for.
func (r *reconciler) destroy(ctx context.Context, s *scope) (loop.Outcome, error) {
	current, err := r.isCurrent(ctx, s.cluster)
	if err != nil {
		return loop.Outcome{}, err
	}

	if !current {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "the object changed meanwhile"), nil
	}

	plan, err := s.lease.PlanDelete(ctx, s.name, omni.DeleteOptions{DestroyMachines: s.cluster.Spec.DeletePolicy.DestroyMachines})
	if err != nil {
		return explainDestroy(err)
	}

	// The local copy goes on while we work: is it still ours?
	live, err := s.lease.Inspect(ctx, s.name, markKeys())
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	if live.Exists && (!owned(live, string(s.cluster.UID)) || live.UUID != s.live.UUID) {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q got another owner or ID meanwhile", s.name), nil
	}

	result, err := s.lease.Apply(ctx, plan, omni.ApplyOptions{Leave: omni.EveryChange})
	r.announce(s.cluster, result)

	if err != nil {
		return explainDestroy(err)
	}

	if err := r.catchUp(ctx, s); err != nil {
		return loop.Wait(time.Second, v1alpha1.ReasonDeleting, "cluster %q is being destroyed in Omni", s.name), nil
	}

	progress, err := s.lease.DeleteProgress(ctx, s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	if progress.Gone {
		return r.letGo(s, released("cluster %q was destroyed in Omni", s.name)), nil
	}

	return describeProgress(s.name, progress, s.cluster.Spec.DeletePolicy.DestroyMachines, r.options.Now()), nil
}

// explainDestroy turns the error of a destruction into what the user is told.
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
