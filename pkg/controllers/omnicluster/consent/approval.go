package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// containsChange reports whether a plan has the change.
func containsChange(changes []plan.Change, change plan.Change) bool {
	return slices.ContainsFunc(changes, func(one plan.Change) bool { return one.Action == change.Action && one.Key() == change.Key() })
}

// approve decides which of the destructive changes that need approval have it, and returns the approvals to remember:
// the changes that an approved hash stands for, until they are gone. That hash is the hash of the whole plan, or the
// hash of the changes that need approval; the second stays the same while the other changes settle and are done. A
// change that was approved stays approved when only a part of the plan is left. To take back what was not done yet, the
// user empties spec.approvedPlan. used is the approval that was used last: its hash stands for no change any more.
func approve(
	approvedPlan, used string, planned *plan.Plan, needApproval []plan.Change, remembered []v1alpha1.ApprovedChange,
) (approved bool, remember []v1alpha1.ApprovedChange) {
	if approvedPlan == "" {
		return false, nil
	}

	destructive := planned.Destructive()
	if len(destructive) == 0 {
		return false, stillThere(planned.Changes, remembered)
	}

	switch approvedPlan {
	case hashToApprove(planned.Hash, used):
		return true, approvalsOf(destructive)
	case hashToApprove(plan.HashOf(needApproval), used):
		return true, approvalsOf(needApproval)
	}

	keys := approvalKeys(remembered)
	for _, change := range needApproval {
		if !slices.Contains(keys, approvalKey(approvalOf(change))) {
			return false, stillThere(planned.Changes, remembered)
		}
	}

	return true, stillThere(planned.Changes, remembered)
}

// stillThere returns the approvals of resources that the plan still destroys or shrinks, or whose destruction is not
// over.
func stillThere(changes []plan.Change, remembered []v1alpha1.ApprovedChange) []v1alpha1.ApprovedChange {
	var kept []v1alpha1.ApprovedChange

	for _, approval := range remembered {
		if slices.ContainsFunc(changes, func(change plan.Change) bool {
			return change.Destructive && approvalKey(approvalOf(change)) == approvalKey(approval)
		}) {
			kept = append(kept, approval)
		}
	}

	return kept
}

func approvalsOf(changes []plan.Change) []v1alpha1.ApprovedChange {
	approvals := make([]v1alpha1.ApprovedChange, 0, len(changes))
	for _, change := range changes {
		approvals = append(approvals, approvalOf(change))
	}

	return approvals
}

func approvalOf(change plan.Change) v1alpha1.ApprovedChange {
	approval := v1alpha1.ApprovedChange{
		Type: change.Type, ID: change.ID, OldSize: change.OldSize, NewSize: change.NewSize, Members: change.Members,
		Version: change.Version,
	}

	if !change.Created.IsZero() {
		approval.Created = new(words.StoredTime(change.Created))
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
		created = words.Time(approval.Created.Time)
	}

	return strings.Join([]string{approval.Type, approval.ID, created, approval.OldSize, approval.NewSize, approval.Members, approval.Version}, "|")
}

// approvals returns the approvals that a status remembers.
func approvals(status v1alpha1.OmniClusterStatus) []v1alpha1.ApprovedChange {
	if status.Plan == nil {
		return nil
	}

	return status.Plan.Approved
}

// KeepApprovals returns a plan status with nothing but the approvals, for the next run that has a plan; nil if there
// are none.
func KeepApprovals(status v1alpha1.OmniClusterStatus) *v1alpha1.OmniClusterPlan {
	if approved := approvals(status); len(approved) > 0 {
		return &v1alpha1.OmniClusterPlan{Approved: approved}
	}

	return nil
}

// ForgetApprovals removes the approvals from a plan status and keeps the plan.
func ForgetApprovals(status *v1alpha1.OmniClusterStatus) {
	if !status.Plan.IsPlan() {
		status.Plan = nil

		return
	}

	status.Plan.Approved = nil
}

// isRemembered reports whether the status lists every approved change that is about to be made as approved. After a
// crash in the middle of an Apply, the status is all that is known of the consent for the rest.
func isRemembered(status v1alpha1.OmniClusterStatus, approved []v1alpha1.ApprovedChange, about []plan.Change) bool {
	keys, remembered := approvalKeys(approved), approvalKeys(approvals(status))

	return !slices.ContainsFunc(about, func(change plan.Change) bool {
		key := approvalKey(approvalOf(change))

		return slices.Contains(keys, key) && !slices.Contains(remembered, key)
	})
}

// AllowSame reports whether two states of an object allow the same destructions: it compares what the object applied
// once, what was approved, and of which cluster. Two states with one UID and generation differ after the storage was
// restored from an older snapshot, if the documents were listed again before the object was.
func AllowSame(a, b v1alpha1.OmniClusterStatus) bool {
	return a.OmniClusterID == b.OmniClusterID && a.Adopting == b.Adopting && a.UsedApproval == b.UsedApproval &&
		equality.Semantic.DeepEqual(a.AppliedMachineSets, b.AppliedMachineSets) &&
		equality.Semantic.DeepEqual(a.AppliedManifests, b.AppliedManifests) &&
		equality.Semantic.DeepEqual(a.AppliedTimes, b.AppliedTimes) &&
		equality.Semantic.DeepEqual(approvals(a), approvals(b))
}

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
