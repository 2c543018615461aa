package omni

import (
	"fmt"
	"strconv"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// setSize is how many machines a MachineSet asks for, and from where.
type setSize struct {
	class     string // empty: a static set, its machines are listed
	unlimited bool
	count     uint32
}

// sizeOf reads a MachineSet; nodes is the number of its listed machines.
func sizeOf(set *omnires.MachineSet, nodes int) setSize {
	allocation := omnires.GetMachineAllocation(set)
	if allocation == nil {
		return setSize{count: uint32(nodes)}
	}

	return setSize{
		class:     allocation.GetName(),
		unlimited: allocation.GetAllocationType() == specs.MachineSetSpec_MachineAllocation_Unlimited,
		count:     allocation.GetMachineCount(),
	}
}

// String is the form that plans show and hash.
func (s setSize) String() string {
	switch {
	case s.class == "":
		return strconv.FormatUint(uint64(s.count), 10)
	case s.unlimited:
		return s.class + "/unlimited"
	default:
		return fmt.Sprintf("%s/%d", s.class, s.count)
	}
}

// shrinks says why going from one size to another takes machines away, or "".
// Between static sizes it says nothing: each lost machine is a teardown of its
// own MachineSetNode.
func shrinks(from, to setSize) string {
	switch {
	case from.class == "":
		return ""
	case to.class == "":
		return "leaves its machine class"
	case from.class != to.class:
		return "changes its machine class"
	case from.unlimited && !to.unlimited:
		return "goes from unlimited to a number"
	case !from.unlimited && !to.unlimited && to.count < from.count:
		return "lowers its machine count"
	default:
		return ""
	}
}
