package plan

import (
	"slices"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// losesDocument reports whether a step takes settings from a machine that the template lists, and of which it has no Machine
// document: that document is gone, because nothing else makes settings of one machine. Kernel arguments of a machine come from
// its set or the cluster, too, so there only arguments that are dropped count.
func (b planBuilder) losesDocument(s step) bool {
	machine := s.change.Machine
	listed := func(set SetState) bool { return slices.Contains(set.Machines, machine) }

	if machine == "" || b.described[machine] || !slices.ContainsFunc(b.wanted, listed) {
		return false
	}

	switch s.change.Type {
	case omnires.ConfigPatchType, omnires.ExtensionsConfigurationType:
		return s.change.Action == ActionDestroy
	case omnires.KernelArgsType:
		return dropsKernelArgs(s)
	default:
		return false
	}
}

func dropsKernelArgs(s step) bool {
	old, had := s.old.(*omnires.KernelArgs)
	updated, has := s.new.(*omnires.KernelArgs)

	return had && has && slices.ContainsFunc(old.TypedSpec().Value.GetArgs(), func(arg string) bool {
		return !slices.Contains(updated.TypedSpec().Value.GetArgs(), arg)
	})
}
