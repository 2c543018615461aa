package consent

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func approvals(status v1alpha1.OmniClusterStatus) []v1alpha1.ApprovedChange {
	if status.Plan == nil {
		return nil
	}

	return status.Plan.Approved
}

// KeepApprovals keeps what was approved for when there is a plan again; nil if
// nothing was.
func KeepApprovals(status v1alpha1.OmniClusterStatus) *v1alpha1.OmniClusterPlan {
	if approved := approvals(status); len(approved) > 0 {
		return &v1alpha1.OmniClusterPlan{Approved: approved}
	}

	return nil
}

// IsPlan tells a plan from approvals that outlast runs without one. What is
// approved and still to be done is counted in the plan.
func IsPlan(plan *v1alpha1.OmniClusterPlan) bool {
	return plan != nil && (len(plan.Approved) == 0 || plan.Destructive > 0)
}

// ForgetApprovals drops what was approved, but not the plan.
func ForgetApprovals(status *v1alpha1.OmniClusterStatus) {
	if !IsPlan(status.Plan) {
		status.Plan = nil

		return
	}

	status.Plan.Approved = nil
}

// isRemembered reports whether the status says of every approved change that is
// about to be made that it was approved: after a crash in the middle it is what
// is known of the leave for the rest.
func isRemembered(status v1alpha1.OmniClusterStatus, approved []v1alpha1.ApprovedChange, about []plan.Change) bool {
	keys, remembered := approvalKeys(approved), approvalKeys(approvals(status))

	return !slices.ContainsFunc(about, func(change plan.Change) bool {
		key := approvalKey(approvalOf(change))

		return slices.Contains(keys, key) && !slices.Contains(remembered, key)
	})
}
