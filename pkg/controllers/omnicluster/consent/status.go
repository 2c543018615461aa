package consent

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// maxPlannedChanges is how many changes status.plan lists.
const maxPlannedChanges = 50

// Hash returns the value of spec.approvedPlan that lets the plan go on: the hash of the changes that wait for an
// approval. If none waits, it is the hash of all destructive changes, which status.plan shows. Neither includes a
// destruction that has begun.
func (d Decision) Hash() string {
	open := d.open()

	if asks := slices.DeleteFunc(slices.Clone(open), func(item Item) bool { return !d.asksForApproval(item) }); len(asks) > 0 {
		open = asks
	}

	return hashToApprove(plan.HashOf(changesIn(open)), d.UsedApproval())
}

// open returns the items that are left and have not begun, in an earlier run or in this one. A change that has begun
// cannot be stopped and needs no approval.
func (d Decision) open() []Item { return slices.DeleteFunc(d.left(), Item.hasBegun) }

// asksForApproval reports whether a change waits for spec.approvedPlan. Under the policy Observe no change does, nor one
// that no approval lets go in a namespace that is being deleted.
func (d Decision) asksForApproval(item Item) bool {
	observes := d.facts.Cluster.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve

	return item.Needs == NeedsApproval && !d.allApproved && !observes && item.Hold != HoldNamespace
}

// PlanStatus returns status.plan: what is left of the plan, destructive changes first.
func (d Decision) PlanStatus() *v1alpha1.OmniClusterPlan {
	left := d.left()
	status := &v1alpha1.OmniClusterPlan{
		Hash:     d.Hash(),
		Approved: stillThere(changesIn(d.open()), d.Approved), Diff: plan.BoundedDiff(d.facts.Plan.Diff(changesIn(left))),
	}

	slices.SortStableFunc(left, func(a, b Item) int { return plan.DestructiveFirst(a.Change, b.Change) })

	for _, item := range left {
		count(status, item.Change)

		if item.Hold == HoldRollout {
			status.Held++
		}

		if len(status.Changes) == maxPlannedChanges {
			status.OmittedChanges++

			continue
		}

		status.Changes = append(status.Changes, v1alpha1.PlannedChange{
			Action: ActionOf(item.Change), Type: item.Change.Type, ID: item.Change.ID, Destructive: item.Change.Destructive,
			NeedsApproval: d.asksForApproval(item), Kind: item.Change.Kind, Held: item.Hold == HoldRollout,
		})
	}

	return status
}

func count(status *v1alpha1.OmniClusterPlan, change plan.Change) {
	if change.Destructive {
		status.Destructive++
	}

	switch change.Action {
	case plan.ActionCreate:
		status.Creates++
	case plan.ActionUpdate:
		status.Updates++
	case plan.ActionDestroy:
		status.Destroys++
	}
}

// ActionOf returns the action of a change in the API.
func ActionOf(change plan.Change) v1alpha1.ChangeAction {
	switch change.Action {
	case plan.ActionCreate:
		return v1alpha1.ActionCreate
	case plan.ActionUpdate:
		return v1alpha1.ActionUpdate
	default:
		return v1alpha1.ActionDestroy
	}
}
