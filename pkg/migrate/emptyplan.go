package migrate

import (
	"fmt"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// clusterType is the type of the only resource in Omni with the ownership mark.
const clusterType = "Clusters.omni.sidero.dev"

// planIsEmpty reports whether a plan changes nothing but the ownership mark of a cluster that is taken over.
func planIsEmpty(plan *v1alpha1.OmniClusterPlan) bool {
	if plan == nil {
		return true
	}

	if plan.Creates > 0 || plan.Destroys > 0 || plan.OmittedChanges > 0 || plan.Destructive > 0 || plan.Updates > 1 {
		return false
	}

	if plan.Updates == 0 {
		return len(plan.Changes) == 0
	}

	return len(plan.Changes) == 1 && plan.Changes[0].Type == clusterType && plan.Changes[0].Action == v1alpha1.ActionUpdate && onlyMarks(plan.Diff)
}

// onlyMarks reports whether the diff of a Cluster adds our annotations and changes nothing else. The diff has one
// line for each line of YAML; its first line names the resource.
func onlyMarks(diff string) bool {
	marks := 0

	for line := range strings.Lines(diff) {
		text := strings.TrimSpace(strings.TrimPrefix(line, "+"))

		switch {
		case strings.HasPrefix(line, "-"), strings.HasPrefix(line, "~"), strings.HasPrefix(line, "..."):
			return false
		case !strings.HasPrefix(line, "+"):
		case strings.HasPrefix(text, v1alpha1.GroupName+"/"):
			marks++
		case text != "annotations:":
			return false
		}
	}

	return marks > 0
}

// planText formats a plan that is not empty for people.
func planText(plan *v1alpha1.OmniClusterPlan) string {
	var text strings.Builder

	fmt.Fprintf(&text, "%d to create, %d to update, %d to destroy (%d of them take machines or objects away)\n",
		plan.Creates, plan.Updates, plan.Destroys, plan.Destructive)
	text.WriteString(strings.TrimRight(plan.Diff, "\n"))

	return text.String()
}
