package rollout

import (
	"cmp"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// maxQualified is how many proved versions of Kubernetes, and of Talos, a stage remembers; maxSoaking is how many
// versions that are not proved yet the status shows.
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

// keyOf distinguishes versions of Kubernetes from versions of Talos.
func keyOf(one v1alpha1.QualifiedVersion) string { return one.Kubernetes + "|" + one.Talos }

// latest keeps the most recently proved versions of each kind. For a version that clusters run now, the time of the
// present proof counts, not the remembered one: if it were dropped for its age, the next evaluation would find it
// again, and drop it again.
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

// mostSoaked returns the versions that are of most interest to people: those that are about to be proved, then those
// that most clusters run. It keeps their order.
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
