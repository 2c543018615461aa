package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// make tries one step, unless Omni has recently refused it; done is false for a destroy that Omni has not finished.
func (a *applier) make(ctx context.Context, s step) (done bool, err error) {
	if a.options.RecentRefusal != nil {
		if refusal := a.options.RecentRefusal(s.change); refusal != nil {
			return false, refusal
		}
	}

	if err = ctx.Err(); err != nil {
		return false, fmt.Errorf("apply to Omni: %w", err)
	}

	if s.change.needsConsent() {
		if err = a.confirm(ctx, s); err != nil {
			return false, err
		}
	}

	a.look.acted = true
	begun, done := false, true

	switch s.change.Action {
	case ActionCreate:
		err = a.create(ctx, s)
	case ActionUpdate:
		err = a.update(ctx, s)
	case ActionDestroy:
		begun, done, err = a.tearDown(ctx, s)
	}

	if begun {
		a.result.Requested = append(a.result.Requested, s.change)
	}

	if err != nil {
		class := omni.Classify(err)

		return false, &ChangeError{Change: s.change, Class: class, cause: err, advice: a.adviceFor(ctx, s, class)}
	}

	if done {
		a.result.Applied = append(a.result.Applied, s.changes()...)
	} else {
		a.result.Pending = append(a.result.Pending, s.change)
	}

	return done, nil
}

// adviceFor returns what to do about a failed step. Omni lets no machine that is locked leave a set that stays, and the lock
// outlasts the Machine document that asked for it.
func (a *applier) adviceFor(ctx context.Context, s step, class omni.Class) string {
	if class != omni.ClassRefused {
		return ""
	}

	if id := a.heldAs(ctx, s); id != "" {
		return fmt.Sprintf("Omni keeps the same patch as %q until then: set `idOverride: %[1]s` on it, or change it so that Omni accepts it", id)
	}

	if s.change.Action == ActionDestroy && s.change.Type == omnires.MachineSetNodeType && isLocked(s.old) {
		return "unlock it: omnictl cluster machine unlock " + s.change.ID
	}

	return ""
}

// heldAs returns the ID under which Omni holds the patch that a step creates, for the same machines; empty if it does not. Omni
// keeps patches that it would not take any more, as long as nobody creates them again.
func (a *applier) heldAs(ctx context.Context, s step) resource.ID {
	for _, held := range a.held(ctx, s) {
		if placeOf(held) == placeOf(s.new) {
			return held.Metadata().ID()
		}
	}

	return ""
}

// held returns the patches with the content of the one that a step creates, which the plan destroys: the template has another ID
// for it, which changes with the place in the list, or has it for other machines.
func (a *applier) held(ctx context.Context, s step) []resource.Resource {
	return slices.DeleteFunc(a.gives(s), func(other resource.Resource) bool { return !sameContent(ctx, other, s.new) })
}

// gives returns the patches that the plan destroys, for a step that creates one.
func (a *applier) gives(s step) []resource.Resource {
	if s.change.Type != omnires.ConfigPatchType || s.change.Action != ActionCreate {
		return nil
	}

	var gone []resource.Resource

	for _, other := range a.plan.steps {
		if other.change.Type == omnires.ConfigPatchType && other.change.Action == ActionDestroy && !other.change.TearingDown {
			gone = append(gone, other.old)
		}
	}

	return gone
}

// samePatch reports whether two patches have one name, and differ in the place in the list.
func samePatch(a, b resource.Resource) bool {
	return withoutPlace(a.Metadata().ID()) == withoutPlace(b.Metadata().ID())
}

// create works on a copy: the client writes Omni's answer into it, and a plan may be applied again.
func (a *applier) create(ctx context.Context, s step) error {
	wanted := s.new.DeepCopy()

	// Somebody disabled the patch under the ID that it had. For other machines it is another patch.
	for _, other := range a.gives(s) {
		_, disabled := other.Metadata().Labels().Get(omni.LabelDisabled)
		if disabled && placeOf(other) == placeOf(s.new) && (sameContent(ctx, other, s.new) || samePatch(other, s.new)) {
			wanted.Metadata().Labels().Set(omni.LabelDisabled, "")
		}
	}

	if err := a.live.Create(ctx, wanted); err != nil {
		return err
	}

	if s.change.Type == TypeMachineSet || s.change.Type == TypeMachineSetNode || s.change.Type == TypeManifestGroup {
		if a.result.Created == nil {
			a.result.Created = map[string]time.Time{}
		}

		// The client's Create does not return when Omni made it. If this fails, the next plan finds the time.
		if made, err := a.live.Get(ctx, wanted.Metadata()); err == nil {
			a.result.Created[s.change.ID] = made.Metadata().Created()
		}
	}

	a.record(*wanted.Metadata(), omni.EffectCreated)
	a.noteCluster(s, wanted)

	return nil
}

// update reads the resource once more: its version is all that Omni compares, and that starts again when a resource is made
// again. The update would take it from whom it belongs to by now, as the patch of a machine that moved to another cluster.
func (a *applier) update(ctx context.Context, s step) error {
	var err error
	if len(s.moved) > 0 {
		err = a.checkMoved(ctx, s)
	}

	if err == nil && s.change.Type != omnires.ClusterType { // checkCluster has looked at that
		_, err = a.checkIdentity(ctx, s)
	}

	wanted := s.new.DeepCopy()
	if err == nil {
		err = a.live.Update(ctx, wanted)
	}

	if state.IsNotFoundError(err) {
		return fmt.Errorf("%w: %w", omni.ErrPlanOutdated, err)
	}

	if err != nil {
		return err
	}

	a.record(*wanted.Metadata(), omni.EffectUpdated)
	a.noteCluster(s, wanted)

	return nil
}

// tearDown advances a teardown as far as possible without waiting. It reports whether this call began it, and whether the
// resource is gone.
func (a *applier) tearDown(ctx context.Context, s step) (begun, gone bool, err error) {
	if s.change.Type == siderolink.LinkType {
		if s, err = a.readLink(ctx, s); err != nil {
			return false, state.IsNotFoundError(err), ignoreNotFound(err)
		}
	}

	pointer := s.old.Metadata()

	// Another request would be a write without effect. When the last finalizer is removed, the mirror wakes the caller,
	// which plans again.
	if s.change.TearingDown && !pointer.Finalizers().Empty() {
		return false, false, nil
	}

	if err = a.checkTeardown(ctx, s); err != nil {
		return false, state.IsNotFoundError(err), ignoreNotFound(err)
	}

	ready, err := a.live.Teardown(ctx, pointer)
	if err != nil {
		return false, state.IsNotFoundError(err), ignoreNotFound(err)
	}

	a.record(*pointer, omni.EffectTornDown)

	begun = !s.change.TearingDown
	if !ready {
		return begun, false, nil
	}

	switch err = a.live.Destroy(ctx, pointer); {
	case err == nil, state.IsNotFoundError(err):
		a.record(*pointer, omni.EffectGone)

		return begun, true, nil
	case omni.Classify(err) == omni.ClassConflict: // a finalizer was added in between
		return begun, false, nil
	default:
		return begun, false, err
	}
}

func ignoreNotFound(err error) error {
	if state.IsNotFoundError(err) {
		return nil
	}

	return err
}

// maxRefusals is the number of refusals after which an apply stops: after so many, the cause is not a single change. Patches
// that Omni holds under another ID stop nothing; no more of them than this are tried in one apply.
const maxRefusals = 10

// refusals are Omni's refusals in one apply. They decide which steps do not go on because of them. The rest of the plan
// does.
//
//   - After the refusal of a resource of the whole cluster (the Cluster itself, its own patches, extensions, manifests
//     and health checks): nothing goes on.
//   - Of a machine set, or of its patches and extensions: nothing of that set and of the machines that the template
//     lists in it.
//   - Of a machine, or of its patches, extensions and kernel arguments: nothing of that machine, and no machine leaves
//     the set that the template lists it in.
//   - No set is torn down while a new one could not be created, or lacks a machine: the new one may replace it. A set without
//     any machine is new, too: Omni took it in an earlier run, and refuses its machines since.
//
// A patch that Omni refuses, but holds for the same machines under another ID (heldAs), stops nothing: that one stays instead of
// it. One that it holds for other machines stays, too.
//
// A teardown that has begun is finished, unless the whole cluster waits.
type refusals struct {
	all            bool
	blocking       int               // how many refusals stop something
	stays          map[string]bool   // patches that are not destroyed, because Omni refuses the same one under another ID
	sets, machines map[string]bool   // that do not go on
	keeps          map[string]bool   // sets that no machine leaves
	newSetMissing  bool              // a new set was not created, or lacks a machine
	newSets        map[string]bool   // sets that the plan creates, or that have no machine yet
	wanted         map[string]string // the set in which the template lists a machine
}

func newRefusals(plan *Plan) *refusals {
	r := &refusals{stays: map[string]bool{}, sets: map[string]bool{}, machines: map[string]bool{}, keeps: map[string]bool{}, newSets: map[string]bool{}, wanted: map[string]string{}}

	for _, set := range plan.Wanted {
		for _, machine := range set.Machines {
			r.wanted[machine] = set.ID
		}

		r.newSets[set.ID] = !hasMachines(plan.Live, set.ID)
	}

	for _, s := range plan.steps {
		if s.change.Type == omnires.MachineSetType && s.change.Action == ActionCreate {
			r.newSets[s.set] = true
		}
	}

	return r
}

// noteRefused records a step that Omni refused.
func (r *refusals) noteRefused(s step) {
	if s.set == "" && len(s.machines) == 0 {
		r.all = true
	}

	r.noteLeftOut(s)
}

// noteLeftOut records a step that was refused, or not tried because of a refusal.
func (r *refusals) noteLeftOut(s step) {
	isSet := s.change.Type == omnires.MachineSetType

	if isSet || len(s.machines) == 0 && s.set != "" {
		r.sets[s.set] = true
	}

	if isSet && s.change.Action == ActionCreate {
		r.newSetMissing = true
	}

	for _, machine := range s.machines {
		r.machines[machine] = true

		// The set lacks this machine, whether its node is a step of this plan or still waits for the machine to become free.
		if set := r.wanted[machine]; set != "" {
			r.keeps[set] = true
			r.newSetMissing = r.newSetMissing || r.newSets[set]
		}
	}
}

// stop reports whether a step must not go on.
func (r *refusals) stop(s step) bool {
	switch {
	case r.all:
		return true
	case s.change.TearingDown:
		return false
	case s.set != "" && r.sets[s.set]:
		return true
	}

	if slices.ContainsFunc(s.machines, func(machine string) bool { return r.machines[machine] || r.sets[r.wanted[machine]] }) {
		return true
	}

	return s.change.destroys() &&
		(r.keeps[s.set] || r.newSetMissing && s.change.Type == omnires.MachineSetType && s.change.Action == ActionDestroy)
}

// refusalOf returns the *ChangeError of a refused content; nil if the error is of another class.
func refusalOf(err error) *ChangeError {
	var failed *ChangeError
	if errors.As(err, &failed) && failed.Class == omni.ClassRefused {
		return failed
	}

	return nil
}
