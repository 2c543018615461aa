package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// An approval is for one time, but its hash can stay in the spec for years, and an Omni that is restored from a backup
// has what was destroyed again, unchanged: the same changes have the same hash. So the status keeps the approval that was
// used last, and the same changes get another hash then.
//
// An approval counts as used as soon as one of its changes has begun. What is left of it is approved by the changes that
// the status remembers, which it did before the first of them began; the hash of the whole could not match any more.

// hashToApprove returns the value of spec.approvedPlan that approves the changes with this hash, after the last approval
// that was used.
func hashToApprove(hash, used string) string {
	if hash == "" || hash != used {
		return hash
	}

	sum := sha256.Sum256([]byte("once more: " + hash))

	return hex.EncodeToString(sum[:])
}

// UsedApproval returns, for the status, the value of spec.approvedPlan whose changes were begun last.
func (d Decision) UsedApproval() string {
	spec, status := d.facts.Cluster.Spec, d.facts.Cluster.Status
	keys := approvalKeys(d.Approved)

	if spec.ApprovedPlan == "" {
		return status.UsedApproval
	}

	if d.madeUnseen() || slices.ContainsFunc(d.Items, func(item Item) bool {
		begun := item.hasBegun() || item.Took && item.State == Done

		return begun && slices.Contains(keys, approvalKey(approvalOf(item.Change)))
	}) {
		return spec.ApprovedPlan
	}

	return status.UsedApproval
}

// madeUnseen reports whether Omni has made a change that the status remembers as approved, and of which no run has seen that: the
// answer was lost, or the process ended before it wrote the status. The plan lacks such a change, but also one that the documents do
// not ask for any more.
func (d Decision) madeUnseen() bool {
	return slices.ContainsFunc(approvals(d.facts.Cluster.Status), func(approval v1alpha1.ApprovedChange) bool {
		planned := slices.ContainsFunc(d.Items, func(item Item) bool {
			waits := item.Hold == HoldOmni && item.Change.Type == approval.Type && item.Change.ID == approval.ID

			return waits || approvalKey(approvalOf(item.Change)) == approvalKey(approval)
		})

		return !planned && isMade(approval, d.facts.Plan)
	})
}

// isMade reports whether Omni has what a change that the plan lacks was to lead to. What a plan does not tell of Omni counts as made:
// then the change needs another approval.
func isMade(approval v1alpha1.ApprovedChange, planned *plan.Plan) bool {
	switch approval.Type {
	case plan.TypeMachineSet:
		set := findSet(planned.Live, approval.ID)
		if set == nil || approval.NewSize == "" {
			return set == nil
		}

		return set.Size == approval.NewSize || set.Size == "" && !plan.IsOfClass(approval.NewSize)
	case plan.TypeMachineSetNode:
		return !slices.ContainsFunc(planned.Live, func(set plan.SetState) bool { return slices.Contains(set.Machines, approval.ID) })
	case plan.TypeManifestGroup: // Members are objects that it loses; whether it has is not known
		return approval.Members != "" || !slices.Contains(planned.LiveManifests, approval.ID)
	default:
		return true
	}
}
