package omni

import (
	"fmt"
	"strconv"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// SetSize is how many machines a MachineSet requests, and from where.
type SetSize struct {
	Class     string // empty: a static set, which lists its machines
	Unlimited bool
	Count     uint32
}

// SizeOf returns the size of a MachineSet; nodes is the number of its listed machines.
func SizeOf(set *omnires.MachineSet, nodes int) SetSize {
	allocation := omnires.GetMachineAllocation(set)
	if allocation == nil {
		return SetSize{Count: uint32(nodes)} //nolint:gosec // the length of a list
	}

	return SetSize{
		Class:     allocation.GetName(),
		Unlimited: allocation.GetAllocationType() == specs.MachineSetSpec_MachineAllocation_Unlimited,
		Count:     allocation.GetMachineCount(),
	}
}

// String returns the form that plans show and hash.
func (s SetSize) String() string {
	switch {
	case s.Class == "":
		return strconv.FormatUint(uint64(s.Count), 10)
	case s.Unlimited:
		return s.Class + "/unlimited"
	default:
		return fmt.Sprintf("%s/%d", s.Class, s.Count)
	}
}

// Shrinks returns why a change from one size to another removes machines, or "". Between static sizes it returns "":
// each lost machine is a teardown of its own MachineSetNode.
func Shrinks(from, to SetSize) string {
	switch {
	case from.Class == "":
		return ""
	case to.Class == "":
		return "leaves its machine class"
	case from.Class != to.Class:
		return "changes its machine class"
	case from.Unlimited && !to.Unlimited:
		return "goes from unlimited to a number"
	case !from.Unlimited && !to.Unlimited && to.Count < from.Count:
		return "lowers its machine count"
	default:
		return ""
	}
}
