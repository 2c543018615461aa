package omni

import (
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// holdBack decides which steps of a plan have to wait while destructive
// changes have no leave: those changes themselves, and what makes no sense
// without them. The rest of the plan goes ahead.
//
//   - New machines of a set whose own change is held: the set still is of
//     another kind, and Omni would refuse them.
//   - The removal of patches, extensions and kernel arguments of machines and
//     sets that are to go: they would run on without their configuration.
func holdBack(steps []step, leave bool) []bool {
	held := make([]bool, len(steps))

	if leave {
		return held
	}

	sets, machines := map[string]bool{}, map[string]bool{}

	for i, s := range steps {
		if !s.change.gated() {
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
