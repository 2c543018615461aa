package consent

import (
	"cmp"
	"fmt"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// appliedRecord is what Omni has from this object: the machine sets and listed
// machines that its documents once asked for. Whatever else is in Omni was made
// by somebody else, or by documents that this object does not know any more,
// and is not destroyed unless somebody says so.
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

// foreignIn looks into a set that is to go: it takes its machines with it.
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

// updated is the next record, sorted. What the documents want and Omni has is
// recorded; what was recorded stays as long as Omni has it. live is from before
// the run's changes, and left are the changes that are still to be made: a set or
// machine with one of them is not yet as the documents want it, and what is not
// wanted without one is gone. With grow false nothing new is recorded.
func (r appliedRecord) updated(wanted, live []plan.SetState, left []plan.Change, grow bool) appliedRecord {
	next := map[string]v1alpha1.AppliedMachineSet{}
	unmade, going := unfinished(left)

	for _, found := range live {
		want := findSet(wanted, found.ID)

		if set := r.find(found.ID); set != nil && (want != nil || going[plan.TypeMachineSet+set.ID]) {
			next[set.ID] = v1alpha1.AppliedMachineSet{
				ID: set.ID, Size: set.Size,
				Machines: slices.DeleteFunc(slices.Clone(set.Machines), func(machine string) bool {
					stays := want == nil || slices.Contains(want.Machines, machine) || going[plan.TypeMachineSetNode+machine]

					return !stays || !slices.Contains(found.Machines, machine)
				}),
			}
		}
	}

	for _, set := range wanted {
		if _, known := next[set.ID]; grow && (known || !unmade[plan.TypeMachineSet+set.ID]) {
			next[set.ID] = grown(next[set.ID], set, unmade)
		}
	}

	return sorted(next)
}

// exceeds reports whether a record holds a set, a machine or a size that another
// does not.
func (r appliedRecord) exceeds(other appliedRecord) bool {
	for _, set := range r {
		known := other.find(set.ID)
		if known == nil || known.Size != set.Size {
			return true
		}

		for _, machine := range set.Machines {
			if !slices.Contains(known.Machines, machine) {
				return true
			}
		}
	}

	return false
}

// grown adds to a set's entry what Omni has of what is wanted.
func grown(entry v1alpha1.AppliedMachineSet, want plan.SetState, unmade map[string]bool) v1alpha1.AppliedMachineSet {
	entry.ID = want.ID

	if !unmade[plan.TypeMachineSet+want.ID] {
		entry.Size = want.Size
	}

	for _, machine := range want.Machines {
		if !unmade[plan.TypeMachineSetNode+machine] && !slices.Contains(entry.Machines, machine) {
			entry.Machines = append(entry.Machines, machine)
		}
	}

	return entry
}

// unfinished are the resources that are yet to be made or changed, and those
// that are yet to be destroyed.
func unfinished(left []plan.Change) (unmade, going map[string]bool) {
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
