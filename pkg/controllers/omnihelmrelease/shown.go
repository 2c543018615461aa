package omnihelmrelease

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// shown returns differences as messages may show them, without what came from Secrets: a name or a key may be made of it.
// They are kept until the next comparison, so of those that no message names only the number and the owner stay.
func shown(differences []drift.Difference, merged values.Values) []drift.Difference {
	kept, named := slices.Clone(differences), map[bool]int{} // those of other releases, and all others

	for i := range kept {
		foreign := kept[i].Owner != ""

		if named[foreign]++; named[foreign] > maxShownDifferences {
			kept[i] = drift.Difference{Owner: kept[i].Owner}
		} else {
			kept[i] = kept[i].Without(merged.Remove)
		}
	}

	return kept
}

// showAgain makes differences what messages may show, for a comparison that held no values while it waited for its turn.
// Without values there are none to show.
func (r *reconciler) showAgain(differences *[]drift.Difference, from basis) error {
	if len(*differences) == 0 {
		return nil
	}

	found := *differences
	*differences = nil

	return r.withValues(from, func(merged values.Values) { *differences = shown(found, merged) })
}
