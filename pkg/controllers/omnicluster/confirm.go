package omnicluster

import (
	"context"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// unconfirmedError ends an Apply before it destroys something that may be wanted by now: the writes before a destroy can
// take minutes. It has the answer of the API server.
type unconfirmedError struct {
	outcome loop.Outcome
	err     error
}

func (e *unconfirmedError) Error() string { return omni.ErrPlanOutdated.Error() }

func (e *unconfirmedError) Unwrap() error { return omni.ErrPlanOutdated }

// confirmBy makes a plan.ApplyOptions.Confirm of a question to the API server, whose outcome continues if the destroy may
// go ahead.
func (s *scope) confirmBy(ask func(context.Context, *scope) (loop.Outcome, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		if outcome, err := ask(ctx, s); err != nil || !outcome.Continues() {
			return &unconfirmedError{outcome: outcome, err: err}
		}

		return nil
	}
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
		r.processStates.of(s.cluster).settling = keptSettling{}

		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "the object or its documents changed meanwhile; the plan is made anew"), nil
	default:
		return loop.Proceed(), nil
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
		return loop.Proceed(), nil
	}
}
