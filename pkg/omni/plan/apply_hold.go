package plan

import (
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

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

	removes := s.change.Action == ActionDestroy || s.change.Action == ActionUpdate && s.change.Type == omnires.KernelArgsType

	return removes && (a.sets[s.set] || slices.ContainsFunc(s.machines, func(machine string) bool { return a.machines[machine] }))
}
