package omnicluster

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// known is all that Omni has from this object, as its status records it.
type known struct {
	sets      appliedRecord
	manifests manifestRecord
}

// foreign says for people why a destructive change hits something that this
// object did not ask for; empty if it only takes back what this object made.
func (k known) foreign(change plan.Change, live []plan.SetState) string {
	if change.Type == plan.TypeManifestGroup {
		return k.manifests.foreign(change)
	}

	return k.sets.foreign(change, live)
}

// updated is the next record after a run.
func (k known) updated(plan *plan.Plan, left []plan.Change, grow bool) known {
	return known{
		sets:      k.sets.updated(plan.Wanted, plan.Live, left, grow),
		manifests: k.manifests.updated(plan.WantedManifests, plan.LiveManifests, left, grow),
	}
}

// exceeds tells whether a record holds anything that another does not.
func (k known) exceeds(other known) bool {
	return k.sets.exceeds(other.sets) || k.manifests.exceeds(other.manifests)
}

// manifestRecord are the IDs of the manifest groups of mode full that Omni has
// from this object, sorted. With any other one, objects would go from the running
// cluster that nobody asked to remove.
type manifestRecord []string

// foreign is known.foreign for a manifest group.
func (m manifestRecord) foreign(change plan.Change) string {
	switch {
	case slices.Contains(m, change.ID):
		return ""
	case change.Action == plan.ActionUpdate:
		return "not made full by this object"
	default:
		return "not made by this object"
	}
}

// updated is the next record, by the rules of appliedRecord.updated: a group that
// is not full any more counts as gone.
func (m manifestRecord) updated(wanted, live []string, left []plan.Change, grow bool) manifestRecord {
	var next manifestRecord

	open := map[string]bool{}

	for _, change := range left {
		if change.Type == plan.TypeManifestGroup {
			open[change.ID] = true
		}
	}

	for _, id := range m {
		if slices.Contains(live, id) && (open[id] || slices.Contains(wanted, id)) {
			next = append(next, id)
		}
	}

	for _, id := range wanted {
		if grow && !open[id] && !slices.Contains(next, id) {
			next = append(next, id)
		}
	}

	slices.Sort(next)

	return next
}

// exceeds tells whether a record holds a group that another does not.
func (m manifestRecord) exceeds(other manifestRecord) bool {
	return slices.ContainsFunc(m, func(id string) bool { return !slices.Contains(other, id) })
}
