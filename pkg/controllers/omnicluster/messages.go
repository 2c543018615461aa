package omnicluster

import (
	"fmt"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// maxNamed is how many things a message names one by one.
const maxNamed = 5

func shownTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// planText counts a plan's changes, leaving out what there is none of.
func planText(planned *plan.Plan) string {
	var parts []string

	for _, part := range []struct {
		count int
		what  string
	}{
		{planned.Count(plan.ActionCreate), "to create"}, {planned.Count(plan.ActionUpdate), "to update"},
		{planned.Count(plan.ActionDestroy), "to destroy"}, {len(planned.Waiting), "waiting for Omni"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}

	return strings.Join(parts, ", ")
}

// countText adds to the counts of a plan how many of its changes destroy something.
func countText(planned string, destructive int) string {
	if destructive == 0 {
		return planned
	}

	return fmt.Sprintf("%s (%d destructive)", planned, destructive)
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", count, noun)
}

// nameChanges names a few changes, and counts the rest.
func nameChanges(changes []plan.Change) string {
	named := make([]string, 0, maxNamed)
	for _, change := range changes[:min(maxNamed, len(changes))] {
		named = append(named, fmt.Sprintf("%s %q", omni.KindOf(change.Type), change.ID))
	}

	return strings.Join(named, ", ") + more(len(changes))
}

func more(count int) string {
	if count <= maxNamed {
		return ""
	}

	return fmt.Sprintf(" and %d more", count-maxNamed)
}
