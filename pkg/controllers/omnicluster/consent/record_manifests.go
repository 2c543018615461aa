package consent

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// manifestRecord has the IDs of the manifest groups of mode full that Omni has from this object, sorted. Removing any
// other group would remove objects from the running cluster although nobody asked for that.
type manifestRecord []string

// foreign is Record.foreign for a manifest group.
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

// updated returns the next record, by the rules of appliedRecord.updated. A group that is no longer full counts as
// gone.
func (m manifestRecord) updated(wanted, live []string, left []plan.Change, grow growth) manifestRecord {
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
		if grow.by(plan.TypeManifestGroup, id) && !open[id] && !slices.Contains(next, id) {
			next = append(next, id)
		}
	}

	slices.Sort(next)

	return next
}

// exceeds reports whether a record holds a group that another does not.
func (m manifestRecord) exceeds(other manifestRecord) bool {
	return slices.ContainsFunc(m, func(id string) bool { return !slices.Contains(other, id) })
}
