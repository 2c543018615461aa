package omni

import (
	"context"
	"errors"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
)

// ApplyOptions says how far Apply may go.
type ApplyOptions struct {
	// Leave is asked about each change that Plan.Hash stands for, whether it may
	// be made now. Those that may not are held, together with what depends on
	// them, and everything else is applied. Nil: none may.
	Leave func(Change) bool
}

// EveryChange is an ApplyOptions.Leave for the destruction of a whole cluster,
// which was asked for as a whole.
func EveryChange(Change) bool { return true }

// Result says what an Apply did. All lists are in the plan's order.
type Result struct {
	// Applied are the changes that Omni took. For a destroy: it is gone.
	Applied []Change
	// Pending are destroys that were requested and wait for Omni to finish;
	// the mirror wakes the caller then.
	Pending []Change
	// Held are the changes that had no leave.
	Held []Change
	// Skipped are the changes that were not tried: after a refusal, or in a
	// later phase than a pending destroy.
	Skipped []Change
	// Requested are the destroys among Applied and Pending that this very call
	// began, for events and metrics.
	Requested []Change
}

// Wrote tells whether the call changed anything in Omni.
func (r Result) Wrote() bool {
	if len(r.Requested) > 0 {
		return true
	}

	for _, change := range r.Applied {
		if change.Action != ActionDestroy {
			return true
		}
	}

	return false
}

// recorder is told of every write that Omni took.
type recorder func(written resource.Metadata, effect effect)

// applier carries one Apply.
type applier struct {
	cluster string
	live    state.State
	record  recorder
	result  Result
}

// ApplyPlan makes the plan's changes in the library's order: creates, updates,
// then destroys phase by phase. It stops at the first change that Omni does
// not take; what was applied until then stays, and the next plan starts from
// there. Updates carry the version they were planned from. A destroy is a
// request for teardown; the resource is destroyed only when no finalizer is
// left, and never waited for.
//
// The Cluster is read once more before anything else: ErrPlanOutdated if it was
// made or made again since, or if an annotation (the owner's mark, a lock) is
// another than the plan saw.
//
// Errors: ErrClusterLocked and ErrPlanOutdated (nothing was done), *ChangeError,
// or the context's.
// The Result is valid in every case.
func ApplyPlan(ctx context.Context, live state.State, plan *Plan, options ApplyOptions) (Result, error) {
	return applyPlan(ctx, live, plan, options, func(resource.Metadata, effect) {})
}

func applyPlan(ctx context.Context, live state.State, plan *Plan, options ApplyOptions, record recorder) (Result, error) {
	if plan.locked && len(plan.steps) > 0 {
		return Result{Skipped: plan.Changes}, ErrClusterLocked
	}

	a := &applier{cluster: plan.Cluster, live: live, record: record}

	if needsCluster(plan) {
		if err := a.checkCluster(ctx, plan); err != nil {
			return Result{Skipped: plan.Changes}, err
		}
	}

	held := holdBack(plan.steps, options.Leave)
	blockedPhase := -1

	for i, s := range plan.steps {
		switch {
		case held[i]:
			a.result.Held = append(a.result.Held, s.change)

			continue
		case s.change.Action == ActionDestroy && blockedPhase >= 0 && s.phase > blockedPhase:
			a.result.Skipped = append(a.result.Skipped, s.change)

			continue
		}

		done, err := a.make(ctx, s)
		if err != nil {
			// A step that failed is named by the error, one that was not tried is not.
			if untried := new(ChangeError); !errors.As(err, &untried) {
				a.result.Skipped = append(a.result.Skipped, s.change)
			}

			a.result.Skipped = append(a.result.Skipped, rest(plan.steps[i+1:])...)

			return a.result, err
		}

		if !done && blockedPhase < 0 {
			blockedPhase = s.phase
		}
	}

	return a.result, nil
}

func rest(steps []step) []Change {
	changes := make([]Change, 0, len(steps))
	for _, s := range steps {
		changes = append(changes, s.change)
	}

	return changes
}
