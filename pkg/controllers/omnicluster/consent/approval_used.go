package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
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

	if spec.ApprovedPlan != "" && slices.ContainsFunc(d.Items, func(item Item) bool {
		begun := item.hasBegun() || item.Took && item.State == Done

		return begun && slices.Contains(keys, approvalKey(approvalOf(item.Change)))
	}) {
		return spec.ApprovedPlan
	}

	return status.UsedApproval
}
