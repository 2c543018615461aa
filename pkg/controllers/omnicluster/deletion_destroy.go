package omnicluster

import (
	"context"
	"errors"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

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
