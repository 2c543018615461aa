package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

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

// findMissing finds the removals whose replacement cannot come: Omni does not know a machine that the same plan lists, or another
// cluster still has it. A mistyped UUID would otherwise wipe a good machine for nothing. Two things belong together:
//
//   - the machines that leave a set, and those that come into it;
//   - a worker set that goes, and a worker set that has no machine yet: perhaps the same one under a new name. That one begins with
//     all of its machines, so that the next plan shows the same.
//
// Machines of this cluster come free by the plan itself. What Omni takes from a class is never missing: it may come free by the plan,
// too, or be made. A machine that is listed in Omni already is no part of the plan, whether it ever came or not.
func (p *Plan) findMissing(ctx context.Context, st state.State, live []SetState) error {
	if !slices.ContainsFunc(p.steps, step.takesMachines) {
		return nil
	}

	missing := map[string]string{} // the first missing machine by set, for messages

	for i := range p.steps {
		s := &p.steps[i]
		if s.change.Type != TypeMachineSetNode || s.change.Action != ActionCreate {
			continue
		}

		why, err := whyMissing(ctx, st, p.Cluster, s.change.ID)
		if err != nil {
			return err
		}

		if why == "" {
			continue
		}

		s.lacking, s.missing = true, true

		if missing[s.set] == "" {
			missing[s.set] = fmt.Sprintf("machine %s %s, and MachineSet %q lists it", s.change.ID, why, s.set)
		}
	}

	p.joinMissing(missing, live)

	return nil
}

// joinMissing marks the removals that wait for missing machines, and what waits with them.
func (p *Plan) joinMissing(missing map[string]string, live []SetState) {
	var begins []string // new sets that lack a machine

	for i := range p.steps {
		s := &p.steps[i]
		if missing[s.set] == "" || s.change.Action != ActionCreate || s.controlPlane || hasMachines(live, s.set) {
			continue
		}

		if s.change.Type == TypeMachineSet || s.change.Type == TypeMachineSetNode {
			s.lacking = true
			begins = append(begins, s.set)
		}
	}

	begins = slices.Compact(slices.Sorted(slices.Values(begins)))

	for i := range p.steps {
		s := &p.steps[i]
		if !s.takesMachines() {
			continue
		}

		switch {
		case missing[s.set] != "" && (s.change.Type == TypeMachineSetNode || s.change.Action == ActionUpdate): // or its class
			s.lacks = []string{s.set}
		case s.change.Type == TypeMachineSet && s.change.Action == ActionDestroy && len(begins) > 0:
			s.lacks = begins
		default:
			continue
		}

		s.change.Lacks = missing[s.lacks[0]]
		p.Changes[i].Lacks = s.change.Lacks
	}
}

// Awaited returns what has to change in Omni before the machines can come because of which removals wait.
func (p *Plan) Awaited() []omni.ResourceKey {
	var keys []omni.ResourceKey

	for _, s := range p.steps {
		waits := func(removal step) bool { return slices.Contains(removal.lacks, s.set) }
		if s.missing && slices.ContainsFunc(p.steps, waits) {
			keys = append(keys, omni.ResourceKey{ResourceType: omnires.MachineStatusType, ID: s.change.ID})
		}
	}

	return keys
}

// takesMachines reports whether a step takes machines out of a set, and has not begun: by name, with the set, or because the set leaves
// its machine class or has fewer of it.
func (s step) takesMachines() bool {
	isMachines := s.change.Type == TypeMachineSetNode || s.change.Type == TypeMachineSet

	return isMachines && s.change.Action != ActionCreate && s.change.destroys()
}

// whyMissing returns why a machine cannot come into a cluster now; empty if it can.
func whyMissing(ctx context.Context, st state.State, cluster, machine string) (string, error) {
	found, err := st.Get(ctx, omnires.NewMachineStatus(machine).Metadata())

	switch {
	case state.IsNotFoundError(err):
		return "is not registered in Omni", nil
	case err != nil:
		return "", fmt.Errorf("look up machine %s: %w", machine, err)
	case found.Metadata().Phase() == resource.PhaseTearingDown:
		return "is being removed from Omni", nil
	}

	if other, has := found.Metadata().Labels().Get(omnires.LabelCluster); has && other != cluster {
		return fmt.Sprintf("still belongs to cluster %q in Omni", other), nil
	}

	return "", nil
}

// hasMachines reports whether a set has machines, listed or of a class.
func hasMachines(sets []SetState, id string) bool {
	return slices.ContainsFunc(sets, func(set SetState) bool { return set.ID == id && (set.Size != "" || len(set.Machines) > 0) })
}
