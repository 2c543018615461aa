package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// The resource types that hold machines, as in Change.Type.
const (
	TypeCluster        = omnires.ClusterType
	TypeMachineSet     = omnires.MachineSetType
	TypeMachineSetNode = omnires.MachineSetNodeType
)

// SetState is a machine set and the machines it requests: as a template wants it, or as Omni has it.
type SetState struct {
	// ID is the ID of the MachineSet in Omni: the cluster's name, a dash, and "control-planes" or the worker set's name.
	ID string
	// Size is "class/3" or "class/unlimited" for a set that takes its machines from a class; empty for a set with listed
	// machines.
	Size string
	// Machines are the listed machines by UUID, sorted, without those that Omni took from a class: they were not requested
	// one by one.
	Machines []string
}

// wantedSets returns the machine sets of a translated template.
func wantedSets(expected []resource.Resource) []SetState {
	var sets []*omnires.MachineSet

	nodes := map[string][]string{}

	for _, item := range expected {
		switch typed := item.(type) {
		case *omnires.MachineSet:
			sets = append(sets, typed)
		case *omnires.MachineSetNode:
			set, _ := typed.Metadata().Labels().Get(omnires.LabelMachineSet)
			nodes[set] = append(nodes[set], typed.Metadata().ID())
		}
	}

	return setStates(sets, nodes)
}

// liveSets returns the machine sets that a cluster has.
func liveSets(ctx context.Context, st state.State, cluster string) ([]SetState, error) {
	items, err := omni.ListOf(ctx, st, omnires.MachineSetType, cluster)
	if err != nil {
		return nil, err
	}

	members, err := omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster)
	if err != nil {
		return nil, err
	}

	nodes := map[string][]string{}

	for _, member := range members {
		if _, allocated := member.Metadata().Labels().Get(omnires.LabelManagedByMachineSetNodeController); allocated || member.Metadata().Owner() != "" {
			continue
		}

		set, _ := member.Metadata().Labels().Get(omnires.LabelMachineSet)
		nodes[set] = append(nodes[set], member.Metadata().ID())
	}

	var sets []*omnires.MachineSet

	for _, item := range items {
		if set, ok := item.(*omnires.MachineSet); ok {
			sets = append(sets, set)
		}
	}

	return setStates(sets, nodes), nil
}

// membersOf returns a short digest of the machines that users put into a set; empty if there are none.
func membersOf(sets []SetState, id string) string {
	for _, set := range sets {
		if set.ID == id && len(set.Machines) > 0 {
			sum := sha256.Sum256([]byte(strings.Join(set.Machines, "\n")))

			return hex.EncodeToString(sum[:16])
		}
	}

	return ""
}

func setStates(sets []*omnires.MachineSet, nodes map[string][]string) []SetState {
	states := make([]SetState, 0, len(sets))

	for _, set := range sets {
		found := SetState{ID: set.Metadata().ID(), Machines: slices.Sorted(slices.Values(nodes[set.Metadata().ID()]))}
		if size := omni.SizeOf(set, 0); size.Class != "" {
			found.Size = size.String()
		}

		states = append(states, found)
	}

	slices.SortFunc(states, func(a, b SetState) int { return cmp.Compare(a.ID, b.ID) })

	return states
}
