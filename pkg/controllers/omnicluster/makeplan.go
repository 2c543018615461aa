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

// makePlan decides to whom the cluster belongs, and compares the template with Omni.
//
// It decides that twice: the local copy changes meanwhile, and a plan from a later state than the first decision would
// revert a cluster that has just got another owner. Changes after the second decision fail in Omni, because updates
// carry the version that they were planned from.
func (r *reconciler) makePlan(ctx context.Context, s *scope) (loop.Outcome, error) {
	if verdict := claimOf(s).Judge(); !verdict.Continues() {
		return verdict, nil
	}

	var err error
	if s.gate, err = r.findGate(ctx, s); err != nil {
		return loop.Outcome{}, err
	}

	planned, err := s.lease.Plan(ctx, s.name, s.rendered.template, plan.Options{
		EveryDestroyIsDestructive: s.seen.adopting,
		// An old mark, or the mark of a hub that is being taken over, must be replaced by the first write.
		ClusterFirst: s.owns(s.seen.live) && s.seen.live.Marks.Hub != r.options.HubID,
		Rollout:      s.gate.Holds(),
	})
	r.processStates.of(s.cluster).checked = s.rendered.template.Checked()

	if err != nil {
		return r.explainPlan(ctx, s, err)
	}

	live, err := omni.Inspect(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	s.seen.live = live

	claim := claimOf(s)
	if verdict := claim.Judge(); !verdict.Continues() {
		return verdict, nil
	}

	// The plan is based on the first decision.
	if claim.IsAdopting(s.cluster.Status.Adopting) && !s.seen.adopting {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q appeared in Omni meanwhile; the plan is made anew", s.name), nil
	}

	if verdict := consent.JudgeControlPlane(s.cluster, s.documents.ControlPlane, claim, planned); !verdict.Continues() {
		return verdict, nil
	}

	s.plan = planned

	if planned.Empty() {
		return loop.Continue(v1alpha1.ReasonUpToDate, "no changes"), nil
	}

	return loop.Continue(v1alpha1.ReasonChangesPlanned, "%s", consent.Summary(planned)+claim.Takeover()), nil
}

func (r *reconciler) explainPlan(ctx context.Context, s *scope, err error) (loop.Outcome, error) {
	message := s.rendered.secrets.Clean(ctx, omni.Message(err))

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
