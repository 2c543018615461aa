package omnicluster

import (
	"context"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// confirmation asks the API server, in the middle of an Apply, whether what is about to be destroyed is still unwanted,
// and keeps the answer that ended the Apply. The writes before a destroy can take minutes.
type confirmation struct {
	ask     func(context.Context) (loop.Outcome, error) // continues if the destroy may go ahead
	ended   bool
	outcome loop.Outcome
	err     error
}

// confirm is plan.ApplyOptions.Confirm.
func (c *confirmation) confirm(ctx context.Context) error {
	c.outcome, c.err = c.ask(ctx)
	if c.ended = c.err != nil || !c.outcome.Continues(); c.ended {
		return omni.ErrPlanOutdated
	}

	return nil
}

// confirmDestroys reads the object and its documents once more before something of a cluster is destroyed. It continues
// if they are those of the plan.
func (r *reconciler) confirmDestroys(ctx context.Context, s *scope) (loop.Outcome, error) {
	current, err := r.isCurrent(ctx, s.cluster)
	if err == nil && current {
		current, err = r.documentsAreCurrent(ctx, s)
	}

	switch {
	case err != nil:
		return loop.Outcome{}, err
	case !current:
		r.records.of(s.cluster).settling = settling{}

		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "the object or its documents changed meanwhile; the plan is made anew"), nil
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "the plan may be applied"), nil
	}
}

// confirmDeletion reads the object once more before a cluster is destroyed. It continues if it still asks for that.
func (r *reconciler) confirmDeletion(ctx context.Context, s *scope) (loop.Outcome, error) {
	current, err := r.isCurrent(ctx, s.cluster)

	switch {
	case err != nil:
		return loop.Outcome{}, err
	case !current:
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "the object changed meanwhile"), nil
	default:
		return loop.Continue(v1alpha1.ReasonDeleting, "the cluster may be destroyed"), nil
	}
}
