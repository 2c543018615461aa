package consent

import (
	"fmt"
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// maxNamed is how many things a message names; it counts the others.
const maxNamed = 5

// Summary returns the numbers of a plan's changes by kind, without zeros.
func Summary(planned *plan.Plan) string {
	var parts []string

	for _, part := range []struct {
		count int
		what  string
	}{
		{planned.Count(plan.ActionCreate), "to create"}, {planned.Count(plan.ActionUpdate), "to update"},
		{planned.Count(plan.ActionDestroy), "to destroy"}, {len(planned.WaitingForOmni), "waiting for Omni"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}

	return strings.Join(parts, ", ")
}

// Names lists the first names, and counts the others.
func Names(names []string) string { return words.Few(names, maxNamed, ", ") }

// ChangeNames lists the first changes, and counts the others.
func ChangeNames(changes []plan.Change) string {
	named := make([]string, 0, len(changes))
	for _, change := range changes {
		named = append(named, ChangeName(change))
	}

	return Names(named)
}

// ChangeName returns the kind and the ID of what a change is about.
func ChangeName(change plan.Change) string {
	return fmt.Sprintf("%s %q", omni.KindOf(change.Type), change.ID)
}

// Reasons lists the first different reasons of changes, and counts the others.
func Reasons(changes []plan.Change) string {
	var reasons []string

	for _, change := range changes {
		if !slices.Contains(reasons, change.Reason) {
			reasons = append(reasons, change.Reason)
		}
	}

	return words.Few(reasons, maxNamed, "; ")
}
