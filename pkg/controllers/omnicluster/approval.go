package omnicluster

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// hashToApprove is what spec.approvedPlan has to be: the hash of those of the
// changes that need approval and have none; if there are none, that of all
// destructive ones. What has begun is not among them.
func hashToApprove(left, requested []omni.Change, needsApproval func(omni.Change) bool) string {
	open := notBegun(left, requested)

	if asks := slices.DeleteFunc(slices.Clone(open), func(change omni.Change) bool { return !needsApproval(change) }); len(asks) > 0 {
		return omni.HashOf(asks)
	}

	return omni.HashOf(open)
}

// notBegun are the changes of those left that nobody has begun: neither an
// earlier run, nor this one, which requested some. What has begun cannot be
// stopped, and needs no approval any more.
func notBegun(left, requested []omni.Change) []omni.Change {
	return slices.DeleteFunc(slices.Clone(left), func(change omni.Change) bool {
		return change.TearingDown || containsChange(requested, change)
	})
}

// containsChange finds a change of a plan again.
func containsChange(changes []omni.Change, change omni.Change) bool {
	return slices.ContainsFunc(changes, func(one omni.Change) bool { return one.Action == change.Action && one.Key() == change.Key() })
}

// approve decides whether those destructive changes of a plan that need approval
// have it, and which approvals to remember: those that an approved hash stands
// for, until they are gone. That is the hash of the whole plan, or of those that
// need approval, which stays the same while the others settle and are done. What
// is left of them later stays approved. Whoever empties spec.approvedPlan takes
// back what was not done yet.
func approve(
	approvedPlan string, plan *omni.Plan, unasked []omni.Change, remembered []v1alpha1.ApprovedChange,
) (approved bool, remember []v1alpha1.ApprovedChange) {
	if approvedPlan == "" {
		return false, nil
	}

	gated := plan.Destructive()
	if len(gated) == 0 {
		return false, stillThere(plan.Changes, remembered)
	}

	switch approvedPlan {
	case plan.Hash:
		return true, approvalsOf(gated)
	case omni.HashOf(unasked):
		return true, approvalsOf(unasked)
	}

	keys := approvalKeys(remembered)
	for _, change := range unasked {
		if !slices.Contains(keys, approvalKey(approvalOf(change))) {
			return false, stillThere(plan.Changes, remembered)
		}
	}

	return true, stillThere(plan.Changes, remembered)
}

// stillThere keeps the approvals of resources that are still to be destroyed or
// shrunk, or whose destruction is not over.
func stillThere(changes []omni.Change, remembered []v1alpha1.ApprovedChange) []v1alpha1.ApprovedChange {
	var kept []v1alpha1.ApprovedChange

	for _, approval := range remembered {
		if slices.ContainsFunc(changes, func(change omni.Change) bool {
			return change.Destructive && approvalKey(approvalOf(change)) == approvalKey(approval)
		}) {
			kept = append(kept, approval)
		}
	}

	return kept
}

// needsApproval tells which changes of a run's plan wait for spec.approvedPlan.
func needsApproval(s *scope) func(omni.Change) bool {
	return func(change omni.Change) bool {
		return change.Destructive && !change.TearingDown &&
			slices.ContainsFunc(s.unasked, func(one omni.Change) bool { return one.Key() == change.Key() })
	}
}

func approvalsOf(changes []omni.Change) []v1alpha1.ApprovedChange {
	approvals := make([]v1alpha1.ApprovedChange, 0, len(changes))
	for _, change := range changes {
		approvals = append(approvals, approvalOf(change))
	}

	return approvals
}

func approvalOf(change omni.Change) v1alpha1.ApprovedChange {
	approval := v1alpha1.ApprovedChange{
		Type: change.Type, ID: change.ID, OldSize: change.OldSize, NewSize: change.NewSize, Members: change.Members,
	}

	if !change.Created.IsZero() {
		// The API keeps whole seconds.
		approval.Created = &metav1.Time{Time: change.Created.UTC().Truncate(time.Second)}
	}

	return approval
}

func approvalKeys(approvals []v1alpha1.ApprovedChange) []string {
	keys := make([]string, 0, len(approvals))
	for _, approval := range approvals {
		keys = append(keys, approvalKey(approval))
	}

	return keys
}

func approvalKey(approval v1alpha1.ApprovedChange) string {
	created := ""
	if approval.Created != nil {
		created = shownTime(approval.Created.Time)
	}

	return strings.Join([]string{approval.Type, approval.ID, created, approval.OldSize, approval.NewSize, approval.Members}, "|")
}
