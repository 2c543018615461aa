package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// ApplyOptions bounds what Apply may do.
type ApplyOptions struct {
	// Consent reports whether a change that needs consent, because it is destructive or Change.DocumentGone, may be made now.
	// Apply holds those that may not, together with what depends on them, and applies everything else. Nil: none may.
	Consent func(Change) bool
	// Admit reports for each change whether its turn in a rollout has come. Apply holds those that wait, together with
	// what depends on them. Nil: nothing waits.
	Admit func(Change) bool
	// Confirm looks again at what the consent depends on, outside of Omni: an error ends the Apply. Apply calls it before a
	// change that needs consent, if it has written since it began or looked last: writes can take minutes. Confirm may be
	// nil.
	Confirm func(context.Context) error
	// RecentRefusal returns Omni's recent refusal of a change, or nil. Apply does not try such a change again. It may be nil.
	RecentRefusal func(Change) *ChangeError
	// Written is called for every write that Omni accepted, with Omni's answer. It may be nil. Session.Apply sets it.
	Written func(written resource.Metadata, effect omni.Effect)
}

// EveryChange is an ApplyOptions.Consent for the deletion of a whole cluster, which was requested as a whole.
func EveryChange(Change) bool { return true }

// Result is what an Apply did. All lists are in the plan's order.
type Result struct {
	// Applied are the changes that Omni accepted. For a destroy: the resource is gone.
	Applied []Change
	// Pending are destroys that were requested and wait for Omni to finish; the mirror wakes the caller then.
	Pending []Change
	// Held are the changes that had no consent, or whose turn has not come.
	Held []Change
	// Waiting are the versions that were not written because Omni has to finish the upgrade that this call begins. Their
	// Reason says so.
	Waiting []Change
	// Refused are the changes whose content Omni rejects: in this call, or, for those that
	// ApplyOptions.RecentRefusal returns, in an earlier one.
	Refused []*ChangeError
	// Skipped are the changes that were not tried: they depend on a refused one, come after another error, or in a later
	// phase than a pending destroy.
	Skipped []Change
	// Requested are the destroys that this call began, for events and metrics: of Applied, of Pending, and one that was torn
	// down before the error of Apply.
	Requested []Change
	// Created has when Omni made each resource that this call created, by ID, of the types that Plan.LiveSince has.
	Created map[string]time.Time
}

// Taken returns the changes that the call made or began. Destructive ones come first, so that they are not lost among
// the others. A destroy counts when it is requested; its end is not a change of ours.
func (r Result) Taken() []Change {
	taken := slices.DeleteFunc(slices.Clone(r.Applied), func(change Change) bool { return change.Action == ActionDestroy })
	taken = append(taken, r.Requested...)
	slices.SortStableFunc(taken, DestructiveFirst)

	return taken
}

// applier holds the state of one Apply.
type applier struct {
	plan     *Plan
	live     state.State
	options  ApplyOptions
	result   Result
	refusals *refusals
	// blockedPhase is that of the first destroy that Omni has not finished; -1 without one.
	blockedPhase int

	cluster ownCluster
	look    look
}

// Apply makes the plan's changes in the library's order: creates, updates, then destroys phase by phase. If Omni
// refuses a change, Apply skips what depends on it (see refusals), and goes on with the rest; a deletion stops at the
// first refusal. At any other error Apply stops. Applied changes stay, and the next plan starts from there. Updates
// carry the version they were planned from. A destroy requests the teardown; Apply destroys the resource only when no
// finalizer is left, and never waits for that.
//
// Apply first reads the Cluster once more: ErrPlanOutdated if it was created, or created again, since the plan, or if
// an annotation (the owner's mark, a lock) differs from the plan's. It does so again, and calls ApplyOptions.Confirm,
// before a change that needs consent and comes after others: ErrPlanOutdated then stops Apply.
//
// Errors: ErrClusterLocked (nothing was done), ErrPlanOutdated, *ChangeError (of the change that stopped Apply, else the
// first refusal), that of Confirm, or the context's. The Result is valid in every case.
func Apply(ctx context.Context, live state.State, plan *Plan, options ApplyOptions) (Result, error) {
	if plan.locked && len(plan.steps) > 0 {
		return Result{Skipped: plan.Changes}, omni.ErrClusterLocked
	}

	a := &applier{plan: plan, live: live, options: options, refusals: newRefusals(plan), blockedPhase: -1}
	a.cluster.seen = plan.seen

	if len(plan.steps) > 0 {
		if err := a.checkCluster(ctx); err != nil {
			return Result{Skipped: plan.Changes}, err
		}
	}

	steps, held := joinCluster(plan.steps, holdBack(plan.steps, options.Consent, options.Admit))

	for i, s := range steps {
		if a.passOver(ctx, s, held[i]) {
			continue
		}

		if err := a.try(ctx, s); err != nil {
			a.result.Skipped = append(a.result.Skipped, rest(steps[i+1:])...)

			return a.result, err
		}
	}

	if len(a.result.Refused) > 0 {
		return a.result, a.result.Refused[0]
	}

	return a.result, nil
}

// passOver reports whether a step is not tried, and records why.
func (a *applier) passOver(ctx context.Context, s step, held bool) bool {
	switch {
	case held:
		a.result.Held = append(a.result.Held, s.change)
	case a.staysHeld(ctx, s):
		a.result.Skipped = append(a.result.Skipped, s.change)
	case a.refusals.stop(s):
		a.refusals.noteLeftOut(s)

		a.result.Skipped = append(a.result.Skipped, s.changes()...)
	case s.waits:
		a.result.Waiting = append(a.result.Waiting, s.change)
	case s.change.Action == ActionDestroy && a.blockedPhase >= 0 && s.phase > a.blockedPhase:
		a.result.Skipped = append(a.result.Skipped, s.change)
	default:
		return false
	}

	return true
}

// staysHeld reports whether a step is one half of a patch that gets another ID and is not moved: it is destroyed under an ID
// under which it stays, or created after so many such refusals that this one is not tried.
func (a *applier) staysHeld(ctx context.Context, s step) bool {
	stays := a.refusals.stays
	if s.change.Type == omnires.ConfigPatchType && s.change.Action == ActionDestroy {
		return stays[s.change.ID]
	}

	if len(stays) < maxRefusals {
		return false
	}

	id := a.heldAs(ctx, s)
	if id != "" {
		stays[id] = true
	}

	return id != ""
}

// try makes a step, and records what came of it. An error stops the Apply; a refusal is none.
func (a *applier) try(ctx context.Context, s step) error {
	done, err := a.make(ctx, s)

	if refusal := refusalOf(err); refusal != nil {
		a.noteRefused(ctx, s, refusal)
	} else if err != nil {
		// The error names a step that failed, but not one that was not tried.
		if untried := new(ChangeError); !errors.As(err, &untried) {
			a.result.Skipped = append(a.result.Skipped, s.change)
		}

		a.result.Skipped = append(a.result.Skipped, s.joined...)

		return err
	}

	if !done && s.change.Action == ActionDestroy && a.blockedPhase < 0 {
		a.blockedPhase = s.phase
	}

	return nil
}

// noteRefused records a refusal, and what does not go on because of it.
func (a *applier) noteRefused(ctx context.Context, s step, refusal *ChangeError) {
	a.result.Refused = append(a.result.Refused, refusal)
	a.result.Skipped = append(a.result.Skipped, s.joined...)

	for _, held := range a.held(ctx, s) {
		a.refusals.stays[held.Metadata().ID()] = true
	}

	if a.heldAs(ctx, s) != "" {
		return
	}

	a.refusals.noteRefused(s)
	a.refusals.blocking++
	a.refusals.all = a.refusals.all || a.plan.deletion || a.refusals.blocking >= maxRefusals
}

// record reports a write that Omni accepted.
func (a *applier) record(written resource.Metadata, effect omni.Effect) {
	if a.options.Written != nil {
		a.options.Written(written, effect)
	}
}

func rest(steps []step) []Change {
	changes := make([]Change, 0, len(steps))
	for _, s := range steps {
		changes = append(changes, s.changes()...)
	}

	return changes
}

// WouldHold returns the changes that an Apply with these options would hold: see ApplyOptions.
func (p *Plan) WouldHold(consent, admit func(Change) bool) []Change {
	var changes []Change

	for i, held := range holdBack(p.steps, consent, admit) {
		if held {
			changes = append(changes, p.steps[i].change)
		}
	}

	return changes
}

// holdBack decides which steps of a plan have to wait: changes that need consent and have none, changes whose turn in
// a rollout has not come, and what depends on them. The rest of the plan goes ahead.
//
//   - Machines of a set whose own change is held: the set still has its old kind, and Omni would refuse new machines;
//     a machine that is to leave waits with its set.
//   - The removal of patches, extensions and kernel arguments of sets whose own change is held, and of machines whose
//     removal is held: they would run on without their configuration.
//   - The teardown of a set while the removal of one of its machines is held: the set's teardown would include it.
//   - A manifest group that gives objects to another one whose change is held: Omni would remove them in between.
//   - New machines of a place while a patch that goes there from another one is held: they would come without it.
//   - New machines of a control plane while a machine that leaves it waits for its turn: a swap must not leave etcd
//     with an even number of members until then.
//   - What would be added to a set that lacks a machine, while a removal is held for that: each plan has to show again
//     what belongs together.
func holdBack(steps []step, consent, admit func(Change) bool) []bool {
	held := make([]bool, len(steps))
	hasConsent := func(change Change) bool { return !change.needsConsent() || consent != nil && consent(change) }
	isTurn := func(change Change) bool { return admit == nil || admit(change) }
	goes := func(change Change) bool { return hasConsent(change) && isTurn(change) }
	staying := map[string]bool{} // sets with a machine whose removal is held

	for _, s := range steps {
		if s.change.Type == omnires.MachineSetNodeType && s.change.needsConsent() && !goes(s.change) {
			staying[s.set] = true
		}
	}

	behind := affected{
		sets: map[string]bool{}, machines: map[string]bool{}, controlPlanes: map[string]bool{}, manifests: map[string]bool{}, lacking: map[string]bool{},
	}

	for i, s := range steps {
		isLastOfSet := s.change.Type == omnires.MachineSetType && s.change.Action == ActionDestroy && s.change.needsConsent()
		if goes(s.change) && !(isLastOfSet && staying[s.change.ID]) {
			continue
		}

		held[i] = true
		behind.add(s, isTurn(s.change))
	}

	for i, s := range steps {
		if !held[i] && !s.change.TearingDown && behind.holds(s) {
			held[i] = true
			behind.addManifests(s) // the steps that give it objects are behind it
		}
	}

	return held
}

// affected is what the held steps of a plan affect.
type affected struct {
	sets, machines, controlPlanes, manifests, lacking map[string]bool

	moves []move
}

// add records a held step.
func (a *affected) add(s step, isTurn bool) {
	a.addManifests(s)

	for _, set := range s.lacks {
		a.lacking[set] = true
	}

	if m, moved := moveOf(s.old, s.new); moved {
		a.moves = append(a.moves, m)
	}

	if s.change.Type == omnires.MachineSetType {
		a.sets[s.change.ID] = true
	}

	// A change that removes nothing leaves the machine as it is: nothing depends on it.
	if len(s.leaving()) == 0 {
		return
	}

	for _, machine := range s.machines {
		a.machines[machine] = true
	}

	if s.controlPlane && !isTurn {
		a.controlPlanes[s.set] = true
	}
}

// addManifests records a manifest group that Omni does not get yet.
func (a *affected) addManifests(s step) {
	if s.change.Type == TypeManifestGroup && s.change.Action != ActionDestroy {
		a.manifests[s.change.ID] = true
	}
}

// holds reports whether a step depends on a held one.
func (a *affected) holds(s step) bool {
	if slices.ContainsFunc(a.moves, func(m move) bool { return slices.ContainsFunc(s.coming(), m.givesTo) }) {
		return true
	}

	if slices.ContainsFunc(s.keepers, func(keeper resource.Resource) bool { return a.manifests[keeper.Metadata().ID()] }) {
		return true
	}

	if s.lacking && a.lacking[s.set] {
		return true
	}

	if s.change.Type == omnires.MachineSetNodeType {
		return a.sets[s.set] || a.controlPlanes[s.set] && s.change.Action == ActionCreate
	}

	isRelease := s.change.Type == omnires.KernelArgsType || s.change.Type == omni.MachineInstallDiskConfigType
	removes := s.change.Action == ActionDestroy || s.change.Action == ActionUpdate && isRelease

	return removes && (a.sets[s.set] || slices.ContainsFunc(s.machines, func(machine string) bool { return a.machines[machine] }))
}
