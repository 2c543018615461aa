package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// reasonTakenFromTheirs is why, in an adoption, an update is destructive that takes a patch from machines.
const reasonTakenFromTheirs = "takes it from machines that had it before the cluster was adopted"

// place is what a resource configures: a machine set, one machine, or, if both are empty, all machines of the cluster.
type place struct{ set, machine string }

func placeOf(item resource.Resource) place {
	var p place

	p.set, _ = item.Metadata().Labels().Get(omnires.LabelMachineSet)
	p.machine, _ = item.Metadata().Labels().Get(omnires.LabelClusterMachine)

	switch item.Metadata().Type() {
	case omnires.KernelArgsType, omni.MachineInstallDiskConfigType:
		p.machine = item.Metadata().ID()
	}

	return p
}

// covers reports whether a machine is configured by what is in the place.
func (p place) covers(m member) bool {
	return p == place{} || p.set != "" && p.set == m.set || p.machine != "" && p.machine == m.machine
}

// member is a machine of a set; without a machine it is one that nobody knows yet, such as that of a class.
type member struct{ set, machine string }

// move is an update that changes the place of a resource, which keeps its ID: a patch has it from its idOverride. It takes
// the resource from one place and gives it to another in the same moment.
type move struct {
	from, to place
	key      omni.ResourceKey
	// going is true if Omni is tearing the resource down: it has to be gone before it can be created in its new place.
	going bool
}

// moveOf returns the move that an update is, if it is one. The other resources of a template never move under the same ID:
// they are the whole cluster's, or their ID is that of their machine. A machine set has its machines leave and join.
func moveOf(old, updated resource.Resource) (move, bool) {
	if old == nil || updated == nil {
		return move{}, false
	}

	switch old.Metadata().Type() {
	case omnires.ConfigPatchType, omnires.ExtensionsConfigurationType:
	default:
		return move{}, false
	}

	m := move{from: placeOf(old), to: placeOf(updated), key: omni.KeyOf(old), going: old.Metadata().Phase() == resource.PhaseTearingDown}

	return m, m.from != m.to
}

func movesIn(updates []template.UpdateChange) []move {
	var moves []move

	for _, update := range updates {
		if m, moved := moveOf(update.Old, update.New); moved {
			moves = append(moves, m)
		}
	}

	return moves
}

// takesFrom reports whether a machine loses the resource.
func (m move) takesFrom(machine member) bool { return m.from.covers(machine) && !m.to.covers(machine) }

// givesTo reports whether a machine gets the resource, and did not have it.
func (m move) givesTo(machine member) bool { return m.to.covers(machine) && !m.from.covers(machine) }

func (m move) name() string { return fmt.Sprintf("%s %q", omni.KindOf(m.key.ResourceType), m.key.ID) }

// orderMoves makes resources that change their place follow the machines. What machines are about to leave with stays
// until they are gone, and machines come when theirs is there. A resource that no document has any more does not move, and
// waits for no machine. If machines with the resource would have to go before others that need it may come, the plan is none:
// half of a replacement would be made, and the other half perhaps never. The error is ErrCollision then, because that ends
// when each has a resource of its own.
func (p *Plan) orderMoves(ctx context.Context, st state.State, moves []move) error {
	if len(moves) == 0 {
		return nil
	}

	underWay, err := removalsUnderWay(ctx, st, p.Cluster)
	if err != nil {
		return err
	}

	removals := slices.Concat(p.removals(), underWay)

	var collisions []*CollisionError

	for _, m := range moves {
		leaving := slices.DeleteFunc(slices.Clone(removals), func(r removal) bool { return !slices.ContainsFunc(r.machines, m.takesFrom) })
		coming := slices.DeleteFunc(slices.Clone(p.steps), func(s step) bool { return !slices.ContainsFunc(s.coming(), m.givesTo) })
		begun := !slices.ContainsFunc(leaving, func(r removal) bool { return !r.begun })

		switch {
		case m.going:
			p.postpone(m, nil, coming)
		case len(leaving) == 0:
			p.putBeforeMachines(m.key)
		case !begun && len(coming) > 0:
			collisions = append(collisions, &CollisionError{
				Type: m.key.ResourceType, ID: m.key.ID, Cluster: p.Cluster,
				Here: fmt.Sprintf("machines that are to leave (%s), and machines that are to come (%s) need it, too: give it another ID there, so that both have theirs",
					leaving[0].name, coming[0].change),
			})
		default:
			p.postpone(m, leaving, coming)
		}
	}

	return joinCollisions(collisions)
}

// postpone has a move wait for the machines that leave, and machines that come for the move.
func (p *Plan) postpone(m move, leaving []removal, coming []step) {
	for _, s := range coming {
		p.wait(omni.KeyOf(s.new), m.name()+" has to be there first")
	}

	if !m.going {
		p.wait(m.key, fmt.Sprintf("machines that are to leave keep it until they are gone (%s); with another ID it need not wait", leaving[0].name))
	}
}

// coming returns the machines that a step brings into the cluster. Those that a set lists are steps of their own.
func (s step) coming() []member {
	switch {
	case !s.change.BringsMachines():
		return nil
	case s.change.Type == TypeMachineSetNode:
		return []member{{s.set, s.change.ID}}
	default:
		return []member{{set: s.set}}
	}
}

// wait takes the create or update of a resource out of what is made now. Whether it is destructive is decided when it is
// made: until then nobody has to consent to it.
func (p *Plan) wait(key omni.ResourceKey, reason string) {
	if s, found := p.take(key); found {
		s.change.Reason = reason
		s.change.Destructive, s.change.Version, s.change.Members = false, "", ""
		p.WaitingForOmni = append(p.WaitingForOmni, s.change)
	}
}

// orderSettings puts the settings of machines that come before these machines: Omni may begin to install a machine as soon as it is in a
// set. The library creates kernel arguments after the machines, and makes all updates after what it creates.
func (p *Plan) orderSettings() {
	var coming []member

	for _, s := range slices.Clone(p.steps) {
		if coming = append(coming, s.coming()...); s.isSetting() && slices.ContainsFunc(coming, placeOf(s.new).covers) {
			p.putBeforeMachines(omni.KeyOf(s.new))
		}
	}
}

// isSetting reports whether a step creates or updates what configures machines.
func (s step) isSetting() bool {
	switch s.change.Type {
	case omnires.ConfigPatchType, omnires.ExtensionsConfigurationType, omnires.KernelArgsType, omni.MachineInstallDiskConfigType:
		return s.change.Action != ActionDestroy
	default:
		return false
	}
}

// putBeforeMachines puts an update before the first machine that may need it.
func (p *Plan) putBeforeMachines(key omni.ResourceKey) {
	s, found := p.take(key)
	if !found {
		return
	}

	at := slices.IndexFunc(p.steps, func(other step) bool {
		return other.change.Type == TypeMachineSet || other.change.Type == TypeMachineSetNode
	})
	if at < 0 {
		at = len(p.steps)
	}

	p.steps = slices.Insert(p.steps, at, s)
	p.Changes = slices.Insert(p.Changes, at, s.change)
}

// take removes the create or update of a resource from the plan.
func (p *Plan) take(key omni.ResourceKey) (step, bool) {
	i := slices.IndexFunc(p.steps, func(s step) bool { return s.new != nil && omni.KeyOf(s.new) == key })
	if i < 0 {
		return step{}, false
	}

	s := p.steps[i]
	p.steps, p.Changes = slices.Delete(p.steps, i, i+1), slices.Delete(p.Changes, i, i+1)

	return s, true
}

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
