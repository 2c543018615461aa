package consent

import (
	"cmp"
	"fmt"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// appliedRecord has what Omni has from this object: the machine sets and listed machines that its documents once asked
// for. Everything else in Omni was made by somebody else, or by documents that this object no longer has, and is
// destroyed only with an approval.
type appliedRecord []v1alpha1.AppliedMachineSet

// find returns the set with the ID; nil if it is not recorded.
func (r appliedRecord) find(id string) *v1alpha1.AppliedMachineSet {
	for i := range r {
		if r[i].ID == id {
			return &r[i]
		}
	}

	return nil
}

// foreign says for people why a destructive change hits something that this
// object did not ask for; empty if it only takes back what this object made.
func (r appliedRecord) foreign(change plan.Change, live []plan.SetState) string {
	set := r.find(change.Set)

	switch {
	case set == nil:
		return "not made by this object"
	case set.MovedTo != "":
		return fmt.Sprintf("its OmniWorkers %q names OmniCluster %q instead; apply it with this OmniCluster again to keep the set", set.OmniWorkers, set.MovedTo)
	case change.Type == plan.TypeMachineSetNode:
		if !slices.Contains(set.Machines, change.ID) {
			return "not put there by this object"
		}

		return ""
	case change.Type != plan.TypeMachineSet:
		return "not made by this object"
	case change.Action == plan.ActionUpdate:
		return resized(set.Size, change.OldSize)
	default:
		return r.foreignIn(set, live)
	}
}

// foreignIn is foreign for a set that the change destroys together with its machines.
func (r appliedRecord) foreignIn(set *v1alpha1.AppliedMachineSet, live []plan.SetState) string {
	for _, found := range live {
		if found.ID != set.ID {
			continue
		}

		for _, machine := range found.Machines {
			if !slices.Contains(set.Machines, machine) {
				return fmt.Sprintf("holds machine %s, which this object did not put there", machine)
			}
		}

		return resized(set.Size, found.Size)
	}

	return ""
}

func resized(applied, live string) string {
	if applied == live {
		return ""
	}

	return fmt.Sprintf("sized %s in Omni, not %s as this object last applied", orListed(live), orListed(applied))
}

func orListed(size string) string {
	if size == "" {
		return "by listed machines"
	}

	return size
}

// updated returns the next record, sorted. It adds what the documents want and Omni has, and keeps what was recorded
// for as long as Omni has it. live is the state before the run's changes. left has the changes that are not made yet: a
// set or machine that one of them affects does not match the documents yet, and an unwanted one that none of them
// affects is gone.
func (r appliedRecord) updated(wanted, live []plan.SetState, left []plan.Change, grow growth) appliedRecord {
	next := map[string]v1alpha1.AppliedMachineSet{}
	unmade, going := leftByAction(left)

	for _, found := range live {
		want := findSet(wanted, found.ID)

		if set := r.find(found.ID); set != nil && (want != nil || going[plan.TypeMachineSet+set.ID]) {
			next[set.ID] = v1alpha1.AppliedMachineSet{
				ID: set.ID, Size: set.Size, OmniWorkers: set.OmniWorkers, MovedTo: set.MovedTo,
				Machines: slices.DeleteFunc(slices.Clone(set.Machines), func(machine string) bool {
					stays := want == nil || slices.Contains(want.Machines, machine) || going[plan.TypeMachineSetNode+machine]

					return !stays || !slices.Contains(found.Machines, machine)
				}),
			}
		}
	}

	for _, set := range wanted {
		if _, recorded := next[set.ID]; recorded || grow.by(plan.TypeMachineSet, set.ID) && !unmade[plan.TypeMachineSet+set.ID] {
			next[set.ID] = grown(next[set.ID], set, unmade, grow)
		}
	}

	return sorted(next)
}

// withMoved returns the record with the sets whose OmniWorkers names another OmniCluster now, by its name. Such a set has no document any
// more, as if that had been deleted, but nobody asked for its removal: whoever may not edit a document deletes it and makes it again.
func (r appliedRecord) withMoved(to map[string]string) appliedRecord {
	moved := slices.Clone(r)

	for i := range moved {
		if cluster := to[moved[i].ID]; cluster != "" {
			moved[i].MovedTo = cluster
		}
	}

	return moved
}

// withWorkers returns the record with the names of the OmniWorkers that ask for its sets now. A set that is asked for has not moved.
func (r appliedRecord) withWorkers(names map[string]string) appliedRecord {
	named := slices.Clone(r)

	for i := range named {
		if name := names[named[i].ID]; name != "" {
			named[i].OmniWorkers, named[i].MovedTo = name, ""
		}
	}

	return named
}

// exceeds reports whether a record has a set, a machine or a size that another does not have.
func (r appliedRecord) exceeds(other appliedRecord) bool {
	for _, set := range r {
		recorded := other.find(set.ID)
		if recorded == nil || recorded.Size != set.Size {
			return true
		}

		for _, machine := range set.Machines {
			if !slices.Contains(recorded.Machines, machine) {
				return true
			}
		}
	}

	return false
}

// grown returns the entry of a set, with what it may grow by and Omni has of the wanted size and machines.
func grown(entry v1alpha1.AppliedMachineSet, want plan.SetState, unmade map[string]bool, grow growth) v1alpha1.AppliedMachineSet {
	entry.ID = want.ID

	if !unmade[plan.TypeMachineSet+want.ID] && grow.by(plan.TypeMachineSet, want.ID) {
		entry.Size = want.Size
	}

	for _, machine := range want.Machines {
		if !unmade[plan.TypeMachineSetNode+machine] && grow.by(plan.TypeMachineSetNode, machine) && !slices.Contains(entry.Machines, machine) {
			entry.Machines = append(entry.Machines, machine)
		}
	}

	return entry
}

// leftByAction returns the resources that are still to be made or changed, and those that are still to be destroyed.
func leftByAction(left []plan.Change) (unmade, going map[string]bool) {
	unmade, going = map[string]bool{}, map[string]bool{}

	for _, change := range left {
		if change.Action == plan.ActionDestroy {
			going[change.Type+change.ID] = true
		} else {
			unmade[change.Type+change.ID] = true
		}
	}

	return unmade, going
}

func findSet(sets []plan.SetState, id string) *plan.SetState {
	for i := range sets {
		if sets[i].ID == id {
			return &sets[i]
		}
	}

	return nil
}

func sorted(sets map[string]v1alpha1.AppliedMachineSet) appliedRecord {
	var record appliedRecord

	for _, set := range sets {
		slices.Sort(set.Machines)

		if len(set.Machines) == 0 {
			set.Machines = nil
		}

		record = append(record, set)
	}

	slices.SortFunc(record, func(a, b v1alpha1.AppliedMachineSet) int { return cmp.Compare(a.ID, b.ID) })

	return record
}
