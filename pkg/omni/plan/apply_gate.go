package plan

import omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

// holdBack decides which steps of a plan have to wait: destructive changes that
// have no consent, and what makes no sense without them. The rest of the plan
// goes ahead.
//
//   - Machines of a set whose own change is held: the set still is of another
//     kind, and Omni would refuse new ones; one that is to go waits with its set.
//   - The removal of patches, extensions and kernel arguments of machines and
//     sets that are to go: they would run on without their configuration.
//   - The teardown of a set while a machine of it has no consent: the set would
//     take the machine with it.
func holdBack(steps []step, consent func(Change) bool) []bool {
	held := make([]bool, len(steps))
	has := func(change Change) bool { return !change.needsConsent() || consent != nil && consent(change) }
	spared := map[string]bool{} // sets with a machine that has no consent

	for _, s := range steps {
		if s.change.Type == omnires.MachineSetNodeType && !has(s.change) {
			spared[s.set] = true
		}
	}

	sets, machines := map[string]bool{}, map[string]bool{}

	for i, s := range steps {
		isLastOfSet := s.change.Type == omnires.MachineSetType && s.change.Action == ActionDestroy && s.change.needsConsent()
		if has(s.change) && !(isLastOfSet && spared[s.change.ID]) {
			continue
		}

		held[i] = true

		if s.change.Type == omnires.MachineSetType {
			sets[s.change.ID] = true
		}

		for _, machine := range s.machines {
			machines[machine] = true
		}
	}

	for i, s := range steps {
		if !held[i] && !s.change.TearingDown && dependsOnHeld(s, sets, machines) {
			held[i] = true
		}
	}

	return held
}

func dependsOnHeld(s step, sets, machines map[string]bool) bool {
	if s.change.Type == omnires.MachineSetNodeType {
		return sets[s.set]
	}

	removes := s.change.Action == ActionDestroy ||
		s.change.Action == ActionUpdate && s.change.Type == omnires.KernelArgsType

	if !removes {
		return false
	}

	if sets[s.set] {
		return true
	}

	for _, machine := range s.machines {
		if machines[machine] {
			return true
		}
	}

	return false
}
