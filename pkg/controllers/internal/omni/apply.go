package omni

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
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

// allows tells whether any destructive change of a plan has leave.
func (o ApplyOptions) allows(plan *Plan) bool {
	return o.Leave != nil && slices.ContainsFunc(plan.Destructive(), o.Leave)
}

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
	live   state.State
	record recorder
	result Result
}

// ApplyPlan makes the plan's changes in the library's order: creates, updates,
// then destroys phase by phase. It stops at the first change that Omni does
// not take; what was applied until then stays, and the next plan starts from
// there. Updates carry the version they were planned from. A destroy is a
// request for teardown; the resource is destroyed only when no finalizer is
// left, and never waited for.
//
// Before anything is destroyed the Cluster is read once more: ErrPlanOutdated
// if it was made again since, or if an annotation (the owner's mark, a lock) is
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

	a := &applier{live: live, record: record}

	if options.allows(plan) {
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

// make tries one step; done is false for a destroy that Omni has not finished.
func (a *applier) make(ctx context.Context, s step) (done bool, err error) {
	if err = ctx.Err(); err != nil {
		return false, fmt.Errorf("apply to Omni: %w", err)
	}

	switch s.change.Action {
	case ActionCreate:
		err = a.create(ctx, s)
	case ActionUpdate:
		err = a.update(ctx, s)
	case ActionDestroy:
		return a.destroy(ctx, s)
	}

	if err != nil {
		return false, &ChangeError{Change: s.change, Class: Classify(err), cause: err}
	}

	a.result.Applied = append(a.result.Applied, s.change)

	return true, nil
}

// create works on a copy, because Omni's answer is written into it, and a plan
// may be applied again.
func (a *applier) create(ctx context.Context, s step) error {
	wanted := s.new.DeepCopy()

	if err := a.live.Create(ctx, wanted); err != nil {
		return err
	}

	a.record(*wanted.Metadata(), effectCreated)

	return nil
}

func (a *applier) update(ctx context.Context, s step) error {
	wanted := s.new.DeepCopy()

	err := a.live.Update(ctx, wanted)
	if state.IsNotFoundError(err) {
		return fmt.Errorf("%w: %w", ErrPlanOutdated, err)
	}

	if err != nil {
		return err
	}

	a.record(*wanted.Metadata(), effectUpdated)

	return nil
}

// destroy advances a destruction as far as it goes without waiting.
func (a *applier) destroy(ctx context.Context, s step) (done bool, err error) {
	done, err = a.tearDown(ctx, s)
	if err != nil {
		return false, &ChangeError{Change: s.change, Class: Classify(err), cause: err}
	}

	if !s.change.TearingDown {
		a.result.Requested = append(a.result.Requested, s.change)
	}

	if done {
		a.result.Applied = append(a.result.Applied, s.change)
	} else {
		a.result.Pending = append(a.result.Pending, s.change)
	}

	return done, nil
}

func (a *applier) tearDown(ctx context.Context, s step) (gone bool, err error) {
	pointer := s.old.Metadata()

	// Asking again would be a write without effect: the last finalizer that goes
	// makes a new plan.
	if s.change.TearingDown && !pointer.Finalizers().Empty() {
		return false, nil
	}

	if err = a.checkIdentity(ctx, s); err != nil {
		return state.IsNotFoundError(err), ignoreNotFound(err)
	}

	ready, err := a.live.Teardown(ctx, pointer)
	if err != nil {
		return state.IsNotFoundError(err), ignoreNotFound(err)
	}

	a.record(*pointer, effectTornDown)

	if !ready {
		return false, nil
	}

	switch err = a.live.Destroy(ctx, pointer); {
	case err == nil, state.IsNotFoundError(err):
		a.record(*pointer, effectGone)

		return true, nil
	case Classify(err) == ClassConflict: // a finalizer came in between
		return false, nil
	default:
		return false, err
	}
}

// checkCluster makes sure that the Cluster still is the one that was planned
// for: a copy may lag, and a teardown carries no version.
func (a *applier) checkCluster(ctx context.Context, plan *Plan) error {
	if plan.seen == nil {
		return nil
	}

	found, err := a.live.Get(ctx, plan.seen.Metadata())
	if state.IsNotFoundError(err) {
		return fmt.Errorf("%w: cluster %q is gone", ErrPlanOutdated, plan.Cluster)
	}

	if err != nil {
		return fmt.Errorf("read cluster %q again: %w", plan.Cluster, err)
	}

	if !found.Metadata().Created().Equal(plan.seen.Metadata().Created()) {
		return fmt.Errorf("%w: cluster %q was made again since", ErrPlanOutdated, plan.Cluster)
	}

	if !found.Metadata().Annotations().Equal(*plan.seen.Metadata().Annotations()) {
		return fmt.Errorf("%w: annotations of cluster %q changed since", ErrPlanOutdated, plan.Cluster)
	}

	return nil
}

// checkIdentity reads what holds machines or objects once more before it is torn
// down: a resource of the same name that somebody else made in the meantime must
// not be hit.
func (a *applier) checkIdentity(ctx context.Context, s step) error {
	switch s.change.Type {
	case omnires.ClusterType, omnires.MachineSetType, omnires.MachineSetNodeType, TypeManifestGroup:
	default:
		return nil
	}

	found, err := a.live.Get(ctx, s.old.Metadata())
	if err != nil {
		return err
	}

	if !found.Metadata().Created().Equal(s.change.Created) {
		return fmt.Errorf("%w: %s %q was made again since", ErrPlanOutdated, KindOf(s.change.Type), s.change.ID)
	}

	if s.change.Type == TypeManifestGroup {
		return a.checkManifests(ctx, s, found)
	}

	// The leave was for a set of this size.
	now, isSet := found.(*omnires.MachineSet)
	planned, wasSet := s.old.(*omnires.MachineSet)

	if isSet && wasSet && sizeOf(now, 0) != sizeOf(planned, 0) {
		return fmt.Errorf("%w: %s %q has another size since", ErrPlanOutdated, KindOf(s.change.Type), s.change.ID)
	}

	if isSet && s.change.gated() {
		return a.checkMembers(ctx, s)
	}

	return nil
}

// checkMembers makes sure that a set which is about to go holds no machine that
// somebody put into it since the plan was made: the set takes it along, and the
// leave was not for that. Machines that Omni takes from a class come and go.
func (a *applier) checkMembers(ctx context.Context, s step) error {
	found, err := a.live.List(ctx,
		resource.NewMetadata(s.old.Metadata().Namespace(), omnires.MachineSetNodeType, "", resource.VersionUndefined),
		state.WithLabelQuery(resource.LabelEqual(omnires.LabelMachineSet, s.change.ID)),
	)
	if err != nil {
		return fmt.Errorf("list the machines of MachineSet %q again: %w", s.change.ID, err)
	}

	for _, node := range found.Items {
		_, allocated := node.Metadata().Labels().Get(omnires.LabelManagedByMachineSetNodeController)
		if id := node.Metadata().ID(); !allocated && node.Metadata().Owner() == "" && !slices.Contains(s.machines, id) {
			return fmt.Errorf("%w: MachineSet %q got machine %q since", ErrPlanOutdated, s.change.ID, id)
		}
	}

	return nil
}

func ignoreNotFound(err error) error {
	if state.IsNotFoundError(err) {
		return nil
	}

	return err
}
