package rollout

import (
	"cmp"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// maxQualified is how many versions of Kubernetes, and of Talos, a stage remembers to have proved; maxSoaking how many
// versions are shown that it has not.
const (
	maxQualified = 10
	maxSoaking   = 10
)

func qualifiedVersion(kind v1alpha1.ChangeKind, version string, since time.Time) v1alpha1.QualifiedVersion {
	qualified := v1alpha1.QualifiedVersion{Since: *seconds(since)}
	if kind == v1alpha1.ChangeTalosVersion {
		qualified.Talos = version
	} else {
		qualified.Kubernetes = version
	}

	return qualified
}

func soakingVersion(kind v1alpha1.ChangeKind, version string, running, needed int) v1alpha1.SoakingVersion {
	one := v1alpha1.SoakingVersion{Clusters: int32(running), Needed: int32(needed)} //nolint:gosec // a fleet
	if kind == v1alpha1.ChangeTalosVersion {
		one.Talos = version
	} else {
		one.Kubernetes = version
	}

	return one
}

// keyOf tells a version of Kubernetes from one of Talos.
func keyOf(one v1alpha1.QualifiedVersion) string { return one.Kubernetes + "|" + one.Talos }

// latest keeps the last versions of each kind, in the order in which they were proved. A version that clusters run now is as
// old as that proof, not as the one that is remembered: if it is dropped, it is found again at once, and has to be dropped
// again.
func latest(qualified []v1alpha1.QualifiedVersion, proved map[string]time.Time) []v1alpha1.QualifiedVersion {
	since := func(one v1alpha1.QualifiedVersion) time.Time {
		if now := proved[keyOf(one)]; now.After(one.Since.Time) {
			return now
		}

		return one.Since.Time
	}

	slices.SortStableFunc(qualified, func(a, b v1alpha1.QualifiedVersion) int {
		return cmp.Or(since(b).Compare(since(a)), cmp.Compare(keyOf(b), keyOf(a)))
	})

	kubernetes, talos := 0, 0
	kept := slices.DeleteFunc(qualified, func(one v1alpha1.QualifiedVersion) bool {
		counter := &kubernetes
		if one.Talos != "" {
			counter = &talos
		}

		*counter++

		return *counter > maxQualified
	})

	slices.SortFunc(kept, func(a, b v1alpha1.QualifiedVersion) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(keyOf(a), keyOf(b)))
	})

	return kept
}

// mostSoaked are those versions of which people want to know: those that are about to be proved, then those that most
// clusters run. They stay in their order.
func mostSoaked(soaking []v1alpha1.SoakingVersion) []v1alpha1.SoakingVersion {
	if len(soaking) <= maxSoaking {
		return soaking
	}

	order := make([]int, len(soaking))
	for i := range order {
		order[i] = i
	}

	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(compareBool(soaking[a].Until == nil, soaking[b].Until == nil), cmp.Compare(soaking[b].Clusters, soaking[a].Clusters))
	})

	order = order[:maxSoaking]
	slices.Sort(order)

	kept := make([]v1alpha1.SoakingVersion, 0, maxSoaking)
	for _, i := range order {
		kept = append(kept, soaking[i])
	}

	return kept
}
