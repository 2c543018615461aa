package omnicluster

import (
	"context"
	"errors"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// makePlan decides whose cluster it is, and compares the template with Omni.
//
// The question whose it is comes twice: the local copy goes on while we work,
// and a plan that was made from a later state than the answer would take back a
// cluster that has just got another owner. What changes after the second answer
// fails in Omni, because updates carry the version they were planned from.
func (r *reconciler) makePlan(ctx context.Context, s *scope) (loop.Outcome, error) {
	if verdict := claimOf(s).Judge(); !verdict.Continues() {
		return verdict, nil
	}

	plan, err := s.lease.Plan(ctx, s.name, s.rendered, plan.Options{
		EveryDestroyIsDestructive: s.adopting,
		// An old mark, or that of a hub that is taken over, must not outlive the first write.
		ClusterFirst: s.owns(s.live) && s.live.Marks.Hub != r.options.HubID,
	})
	if err != nil {
		return r.explainPlan(ctx, s, err)
	}

	if s.live, err = omni.Inspect(ctx, s.lease.Copy(), s.name, markKeys()); err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	verdict := claimOf(s).Judge()
	if !verdict.Continues() {
		return verdict, nil
	}

	// The plan was made by the first answer.
	if claimOf(s).IsAdopting(s.cluster.Status.Adopting) && !s.adopting {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q appeared in Omni meanwhile; the plan is made anew", s.name), nil
	}

	s.plan = plan

	if plan.Empty() {
		return loop.Continue(v1alpha1.ReasonUpToDate, "no changes"), nil
	}

	return loop.Continue(v1alpha1.ReasonChangesPlanned, "%s", consent.Summary(plan)+claimOf(s).Takeover()), nil
}

// owns reports whether a cluster in Omni carries this object's mark.
func (s *scope) owns(live omni.Live) bool {
	return consent.Claim{UID: string(s.cluster.UID), Hubs: s.hubs, Live: live}.Owned()
}

// isMark reports whether a mark is this object's.
func (s *scope) isMark(marks omni.Marks) bool {
	return consent.IsMark(marks, string(s.cluster.UID), s.hubs)
}

// claimOf is what decides whose the cluster is. Without a connection there is no
// endpoint to compare.
func claimOf(s *scope) consent.Claim {
	claim := consent.Claim{
		Name: s.name, UID: string(s.cluster.UID), KnownID: s.cluster.Status.OmniClusterID,
		Adopt: s.cluster.Spec.Adopt, Recreate: s.cluster.Annotations[v1alpha1.AnnotationRecreate], Live: s.live,
		Hubs: s.hubs, LastSeen: s.cluster.Status.Endpoint, OwnerGone: s.ownerGone,
	}

	if s.connection != nil {
		claim.Connection, claim.Endpoint = s.connection.Name, s.connection.Spec.Endpoint
	}

	return claim
}

func (r *reconciler) explainPlan(ctx context.Context, s *scope, err error) (loop.Outcome, error) {
	message := s.secrets.clean(ctx, omni.Message(err))

	switch {
	case errors.Is(err, omni.ErrTemplate):
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", message), nil
	case errors.Is(err, omni.ErrCollision):
		return loop.Stall(v1alpha1.ReasonCollision, "%s. This cluster goes on by itself as soon as that is free", message), nil
	case errors.Is(err, omni.ErrClusterTearingDown):
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "%s", message), nil
	case errors.Is(err, omni.ErrNotSynced), errors.Is(err, omni.ErrBehind):
		s.behind = errors.Is(err, omni.ErrBehind)

		return loop.Wait(time.Second, v1alpha1.ReasonMirrorNotSynced, "%s", message), nil
	default:
		return loop.Outcome{}, errors.New(message)
	}
}
