package omnicluster

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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
	if verdict := judgeClaim(claimOf(s)); !verdict.Continues() {
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
	case s.movesHere():
		return "; cluster " + strconv.Quote(s.name) + " is taken over from hub " + otherHub(s.live.Marks) +
			", which OmniConnection " + strconv.Quote(s.connection.Name) + " names (" + v1alpha1.AnnotationPreviousHub + ")"
	case !s.live.Exists || s.owns(s.live):
		return ""
	case s.live.Marks.UID == "":
		return "; cluster " + strconv.Quote(s.name) + ", which has no owner, is taken over (spec.adopt)"
	default:
		return "; cluster " + strconv.Quote(s.name) + " is taken over (spec.adopt) from " + owner(s.live.Marks)
	}
}

// owns tells whether a cluster in Omni carries this object's mark.
func (s *scope) owns(live omni.Live) bool { return owned(live, string(s.cluster.UID), s.hubs) }

// isMark tells whether a mark is this object's.
func (s *scope) isMark(marks omni.Marks) bool { return isMark(marks, string(s.cluster.UID), s.hubs) }

// movesHere tells whether the cluster carries this object's mark of the hub that
// its connection names as the previous one.
func (s *scope) movesHere() bool { return s.owns(s.live) && s.hubs.IsPrevious(s.live.Marks.Hub) }

func claimOf(s *scope) claim {
	return claim{
		name: s.name, uid: string(s.cluster.UID), knownID: s.cluster.Status.OmniClusterID,
		adopt: s.cluster.Spec.Adopt, recreate: s.cluster.Annotations[v1alpha1.AnnotationRecreate], live: s.live,
		hubs: s.hubs, connection: s.connection.Name,
		lastSeen: s.cluster.Status.Endpoint, endpoint: s.connection.Spec.Endpoint, ownerGone: s.ownerGone,
	}
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
