package export

import (
	"fmt"
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// warningsFor returns what the person who applies the manifests needs to know.
func warningsFor(name string, exported *observe.Exported, objects *Objects, inexpressible []plan.Change) []string {
	var warnings []string

	warn := func(format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("cluster %q: ", name)+fmt.Sprintf(format, args...))
	}

	if hasContents(objects) {
		warn("patches, manifests and health checks may hold secrets, and were written into the manifests: look before you commit them")
	}

	if marks := exported.Live.Marks; marks.UID != "" {
		warn("it belongs to the OmniCluster %s/%s (UID %s): as long as that exists the manifests change nothing; release the cluster there first "+
			"(spec.deletePolicy.orphan: true, then delete it)",
			marks.Namespace, marks.Name, marks.UID)
	}

	if exported.Live.Locked {
		warn("it is locked in Omni: the operator changes nothing until somebody unlocks it there")
	}

	if len(exported.Unmanaged) > 0 {
		warn("kernel arguments of %s are set in Omni beside every template: they are not in the manifests, and stay as they are",
			strings.Join(exported.Unmanaged, ", "))
	}

	if len(exported.Disabled) > 0 {
		warn("the patches %s are disabled in Omni, which no document can express: they stay disabled where Omni has them, and are in effect in a new cluster",
			strings.Join(exported.Disabled, ", "))
	}

	for _, change := range inexpressible {
		warn("applying the manifests would %s: %s", change.String(), meaning(change))
	}

	return warnings
}

// meaning explains a difference, which is something that our kinds cannot express.
func meaning(change plan.Change) string {
	switch kind := omni.KindOf(change.Type); {
	case change.Action == plan.ActionDestroy:
		return "no document can express it; while a cluster is being adopted nothing is destroyed without spec.approvedPlan"
	case change.Action == plan.ActionCreate:
		return "Omni has it under another ID or not at all"
	case kind == "KubernetesHealthCheck":
		return "its job is written in another format, with the same content"
	default:
		return "it has settings or labels of Omni's own that no document can express"
	}
}

func hasContents(objects *Objects) bool {
	count := len(objects.ConfigMaps) + len(objects.Cluster.Spec.Patches) + len(objects.Cluster.Spec.Kubernetes.Manifests) +
		len(objects.Cluster.Spec.Kubernetes.Healthchecks) + len(objects.ControlPlane.Spec.Patches)

	for i := range objects.Workers {
		count += len(objects.Workers[i].Spec.Patches)
	}

	for i := range objects.Machines {
		count += len(objects.Machines[i].Spec.Patches)
	}

	return count > 0
}

const (
	// maxSuggestions bounds the names in an error.
	maxSuggestions = 5
	// nearBy is how many typing errors a suggestion may correct.
	nearBy = 3
)

// suggest returns the names of clusters that the user may have meant.
func suggest(name string, existing []string) string {
	var near []string

	for _, candidate := range existing {
		lower, wanted := strings.ToLower(candidate), strings.ToLower(name)
		if distance(lower, wanted) <= nearBy || strings.Contains(lower, wanted) || strings.Contains(wanted, lower) {
			near = append(near, candidate)
		}
	}

	slices.SortStableFunc(near, func(a, b string) int { return distance(a, name) - distance(b, name) })

	switch {
	case len(existing) == 0:
		return "it has no clusters that this service account may see"
	case len(near) > 0:
		return "near: " + strings.Join(near[:min(len(near), maxSuggestions)], ", ")
	default:
		return "it has: " + words.Few(existing, maxSuggestions, ", ")
	}
}

// distance is the number of single-byte edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}

			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}

	return row[len(b)]
}
