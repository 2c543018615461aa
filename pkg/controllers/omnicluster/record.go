package omnicluster

import (
	"cmp"
	"fmt"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
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
func (r appliedRecord) foreign(change omni.Change, live []omni.SetState) string {
	set := r.find(change.Set)

	switch {
	case set == nil:
		return "not made by this object"
	case change.Type == omni.TypeMachineSetNode:
		if !slices.Contains(set.Machines, change.ID) {
			return "not put there by this object"
		}

		return ""
	case change.Type != omni.TypeMachineSet:
		return "not made by this object"
	case change.Action == omni.ActionUpdate:
		return resized(set.Size, change.OldSize)
	default:
		return r.foreignIn(set, live)
	}
}

// foreignIn looks into a set that is to go: it takes its machines with it.
func (r appliedRecord) foreignIn(set *v1alpha1.AppliedMachineSet, live []omni.SetState) string {
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
// recorded; what was recorded stays as long as Omni has it. left are the changes
// that are still to be made: a set or machine with one of them is not yet as the
// documents want it. With grow false nothing new is recorded.
func (r appliedRecord) updated(wanted, live []omni.SetState, left []omni.Change, grow bool) appliedRecord {
	next := map[string]v1alpha1.AppliedMachineSet{}

	for _, found := range live {
		if set := r.find(found.ID); set != nil {
			next[set.ID] = v1alpha1.AppliedMachineSet{ID: set.ID, Size: set.Size, Machines: common(set.Machines, found.Machines)}
		}
	}

	if grow {
		pending := unfinished(left)

		for _, set := range wanted {
			if pending[omni.TypeMachineSet+set.ID] {
				set.Size = next[set.ID].Size

				if _, known := next[set.ID]; !known {
					continue
				}
			}

			entry := v1alpha1.AppliedMachineSet{ID: set.ID, Size: set.Size, Machines: next[set.ID].Machines}

			for _, machine := range set.Machines {
				if !pending[omni.TypeMachineSetNode+machine] && !slices.Contains(entry.Machines, machine) {
					entry.Machines = append(entry.Machines, machine)
				}
			}

			next[set.ID] = entry
		}
	}

	return sorted(next)
}

// unfinished are the resources that are yet to be made or changed.
func unfinished(left []omni.Change) map[string]bool {
	pending := map[string]bool{}

	for _, change := range left {
		if change.Action != omni.ActionDestroy {
			pending[change.Type+change.ID] = true
		}
	}

	return pending
}

func common(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(one string) bool { return !slices.Contains(others, one) })
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

// recordOf is the record that counts for the cluster that Omni has: that of a
// cluster which is gone says nothing about the one in its place.
func recordOf(s *scope) appliedRecord {
	status := s.cluster.Status
	if status.OmniClusterID != "" && s.live.UUID != status.OmniClusterID {
		return nil
	}

	return status.AppliedMachineSets
}

// reportAdoption writes into the status whether an existing cluster is being
// taken over.
func reportAdoption(s *scope) {
	status := &s.cluster.Status

	switch {
	case !s.live.Exists, s.plan != nil && s.plan.Empty():
		status.Adopting = false
	case s.adopting && (s.reserve || owned(s.live, string(s.cluster.UID))):
		status.Adopting = true
	}
}
