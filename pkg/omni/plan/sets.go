package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
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

// IsOfClass reports whether a size, as in Change.NewSize, is that of a set which takes its machines from a class.
func IsOfClass(size string) bool { return strings.Contains(size, "/") }

// requested returns the MachineSetNodes that were requested one by one.
func requested(nodes []resource.Resource) []resource.Resource {
	return slices.DeleteFunc(slices.Clone(nodes), func(node resource.Resource) bool {
		_, allocated := node.Metadata().Labels().Get(omnires.LabelManagedByMachineSetNodeController)

		return allocated || node.Metadata().Owner() != ""
	})
}

// staying returns the MachineSetNodes that do not leave their sets.
func staying(nodes []resource.Resource) []resource.Resource {
	return slices.DeleteFunc(slices.Clone(nodes), func(node resource.Resource) bool { return node.Metadata().Phase() != resource.PhaseRunning })
}

// createdTimes returns when Omni made resources, by ID.
func createdTimes(items []resource.Resource) map[string]time.Time {
	times := make(map[string]time.Time, len(items))
	for _, item := range items {
		times[item.Metadata().ID()] = item.Metadata().Created()
	}

	return times
}

// newControlPlane reports whether the control plane's machine set is among the resources to create, and from which backup Omni is to
// make its etcd; see Plan.Backup.
func newControlPlane(created []resource.Resource) (made bool, backup string) {
	for _, item := range created {
		set, isSet := item.(*omnires.MachineSet)
		if !isSet {
			continue
		}

		if _, controlPlane := set.Metadata().Labels().Get(omnires.LabelControlPlaneRole); controlPlane {
			return true, omni.BackupOf(set)
		}
	}

	return false, ""
}

// nodesBySet returns the machines of each set: the MachineSetNodes among resources.
func nodesBySet(items []resource.Resource) map[string][]string {
	nodes := map[string][]string{}

	for _, item := range items {
		if item.Metadata().Type() == omnires.MachineSetNodeType {
			set, _ := item.Metadata().Labels().Get(omnires.LabelMachineSet)
			nodes[set] = append(nodes[set], item.Metadata().ID())
		}
	}

	return nodes
}

// setStates returns the MachineSets among resources, sorted, with their machines: the MachineSetNodes among nodes.
func setStates(items, nodes []resource.Resource) []SetState {
	machines, states := nodesBySet(nodes), []SetState{}

	for _, item := range items {
		set, ok := item.(*omnires.MachineSet)
		if !ok {
			continue
		}

		found := SetState{ID: set.Metadata().ID(), Machines: slices.Sorted(slices.Values(machines[set.Metadata().ID()]))}
		if size := omni.SizeOf(set, 0); size.Class != "" {
			found.Size = size.String()
		}

		states = append(states, found)
	}

	slices.SortFunc(states, func(a, b SetState) int { return cmp.Compare(a.ID, b.ID) })

	return states
}

// machinesOf returns the machines of a set.
func machinesOf(sets []SetState, id string) []string {
	for _, set := range sets {
		if set.ID == id {
			return set.Machines
		}
	}

	return nil
}

// membersOf returns a short digest of the machines that users put into a set; empty if there are none.
func membersOf(sets []SetState, id string) string {
	machines := machinesOf(sets, id)
	if len(machines) == 0 {
		return ""
	}

	return digestOfNames(machines...)
}

// digestOfNames returns a short digest, for Change.Members.
func digestOfNames(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))

	return hex.EncodeToString(sum[:16])
}
