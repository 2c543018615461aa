package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// removal is what takes machines out of the cluster, or out of their set.
type removal struct {
	machines []member
	name     string // for messages
	begun    bool   // nothing else can be chosen any more
}

// removals returns the removals that the plan's steps are.
func (p *Plan) removals() []removal {
	var found []removal

	for _, s := range p.steps {
		if machines := s.leaving(); len(machines) > 0 {
			found = append(found, removal{machines: machines, name: s.change.String(), begun: s.change.TearingDown})
		}
	}

	return found
}

// leaving returns the machines that a step takes out of the cluster, or out of their set. Which ones a set loses that gets
// smaller is not known. A set that goes has some as long as it is there: Omni takes them off the list long before.
func (s step) leaving() []member {
	isNode := s.change.Type == TypeMachineSetNode && s.change.Action == ActionDestroy
	isSet := s.change.Type == TypeMachineSet && s.change.Destructive

	if !isNode && !isSet {
		return nil
	}

	var members []member
	for _, machine := range s.machines {
		members = append(members, member{s.set, machine})
	}

	if isSet && (s.change.Action == ActionUpdate || s.change.TearingDown) {
		members = append(members, member{set: s.set})
	}

	return members
}

// removalsUnderWay returns the removals that Omni goes on with by itself, of which a plan may have no step any more: of
// machines that it has not wiped yet, and of those that it still has to choose in a set of a class that was made smaller.
//
// Omni has the status of a machine from when the machine is in a set until it is wiped. So the statuses are read first: that
// of a machine which has just come must not be taken for that of one which leaves.
func removalsUnderWay(ctx context.Context, st state.State, cluster string) ([]removal, error) {
	statuses, err := omni.ListOf(ctx, st, omnires.ClusterMachineStatusType, cluster)
	if err != nil {
		return nil, err
	}

	sets, nodes, err := listSets(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	listed := nodesBySet(staying(nodes))
	found := slices.Concat(unlistedMachines(statuses, listed), surplusOf(sets, listed))
	slices.SortFunc(found, func(a, b removal) int { return cmp.Compare(a.name, b.name) })

	return found, nil
}

// unlistedMachines returns the removals of machines that are in a set which does not list them any more. Another set may
// list them already.
func unlistedMachines(statuses []resource.Resource, listed map[string][]string) []removal {
	var found []removal

	for _, status := range statuses {
		set, _ := status.Metadata().Labels().Get(omnires.LabelMachineSet)
		if id := status.Metadata().ID(); !slices.Contains(listed[set], id) {
			found = append(found, removal{
				machines: []member{{set, id}}, name: fmt.Sprintf("machine %s of MachineSet %q", id, set), begun: true,
			})
		}
	}

	return found
}

// surplusOf returns the removals of machines by which sets of a class have too many.
func surplusOf(sets []resource.Resource, listed map[string][]string) []removal {
	var found []removal

	for _, item := range sets {
		set, ok := item.(*omnires.MachineSet)
		if !ok {
			continue
		}

		id := set.Metadata().ID()
		size, has := omni.SizeOf(set, 0), len(listed[id])

		if size.Class != "" && !size.Unlimited && has > int(size.Count) {
			found = append(found, removal{
				machines: []member{{set: id}}, name: fmt.Sprintf("MachineSet %q has %d machines and is to have %d", id, has, size.Count), begun: true,
			})
		}
	}

	return found
}
