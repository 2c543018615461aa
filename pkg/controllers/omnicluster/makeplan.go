package omnicluster

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

// makePlan decides whose cluster it is, and compares the template with Omni.
//
// The question whose it is comes twice: the local copy goes on while we work,
// and a plan that was made from a later state than the answer would take back a
// cluster that has just got another owner. What changes after the second answer
// fails in Omni, because updates carry the version they were planned from.
func (r *reconciler) makePlan(ctx context.Context, s *scope) (loop.Outcome, error) {
	if verdict := judgeClaim(claimOf(s)); !verdict.Continues() {
		return verdict, nil
	}

	plan, err := s.lease.Plan(ctx, s.name, s.rendered, omni.PlanOptions{EveryDestroyIsDestructive: s.adopting})
	if err != nil {
		return r.explainPlan(ctx, s, err)
	}

	if s.live, err = s.lease.Inspect(ctx, s.name, markKeys()); err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	verdict := judgeClaim(claimOf(s))
	if !verdict.Continues() {
		return verdict, nil
	}

	// The plan was made by the first answer.
	if isAdopting(claimOf(s), s.cluster.Status.Adopting) && !s.adopting {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q appeared in Omni meanwhile; the plan is made anew", s.name), nil
	}

	s.plan, s.left, s.claimed = plan, slices.Concat(plan.Changes, plan.Waiting), true

	if plan.Empty() {
		return loop.Continue(v1alpha1.ReasonUpToDate, "no changes"), nil
	}

	return loop.Continue(v1alpha1.ReasonChangesPlanned, "%s", planText(plan)+s.takeover()), nil
}

// takeover says whose cluster is about to be taken over; empty if none is.
func (s *scope) takeover() string {
	switch {
	case !s.live.Exists || owned(s.live, string(s.cluster.UID)):
		return ""
	case s.live.Marks.UID == "":
		return "; cluster " + strconv.Quote(s.name) + ", which has no owner, is taken over (spec.adopt)"
	default:
		return "; cluster " + strconv.Quote(s.name) + " is taken over (spec.adopt) from " + owner(s.live.Marks)
	}
}

func claimOf(s *scope) claim {
	return claim{
		name: s.name, uid: string(s.cluster.UID), knownID: s.cluster.Status.OmniClusterID,
		adopt: s.cluster.Spec.Adopt, recreate: s.cluster.Annotations[v1alpha1.AnnotationRecreate], live: s.live,
		lastSeen: s.cluster.Status.Endpoint, endpoint: s.connection.Spec.Endpoint,
	}
}

func (r *reconciler) explainPlan(ctx context.Context, s *scope, err error) (loop.Outcome, error) {
	message := s.secrets.clean(ctx, omni.Message(err))

	switch {
	case errors.Is(err, omni.ErrTemplate):
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", message), nil
	case errors.Is(err, omni.ErrCollision):
		return loop.Stall(v1alpha1.ReasonCollision, "%s", message), nil
	case errors.Is(err, omni.ErrClusterTearingDown):
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "%s", message), nil
	case errors.Is(err, omni.ErrNotSynced), errors.Is(err, omni.ErrBehind):
		s.behind = errors.Is(err, omni.ErrBehind)

		return loop.Wait(time.Second, v1alpha1.ReasonMirrorNotSynced, "%s", message), nil
	default:
		return loop.Outcome{}, errors.New(message)
	}
}
