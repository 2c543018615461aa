package consent

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// maxPlannedChanges is how many changes status.plan lists.
const maxPlannedChanges = 50

// Hash is what spec.approvedPlan has to be: the hash of those of the changes that
// need approval and have none; if there are none, that of all destructive ones. What
// has begun is not among them.
func (d Decision) Hash() string {
	open := d.open()

	if asks := slices.DeleteFunc(slices.Clone(open), func(item Item) bool { return !d.asksForApproval(item) }); len(asks) > 0 {
		return plan.HashOf(changesIn(asks))
	}

	return plan.HashOf(changesIn(open))
}

// open are the items that are left and that nobody has begun: neither an earlier run,
// nor this one. What has begun cannot be stopped, and needs no approval any more.
func (d Decision) open() []Item { return slices.DeleteFunc(d.left(), Item.hasBegun) }

// asksForApproval reports whether a change waits for spec.approvedPlan. What is only
// observed waits for something else.
func (d Decision) asksForApproval(item Item) bool {
	observes := d.facts.Cluster != nil && d.facts.Cluster.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve

	return item.Needs == NeedsApproval && !d.approved && !observes
}

// PlanStatus shows what is left of the plan, destructive changes first.
func (d Decision) PlanStatus() *v1alpha1.OmniClusterPlan {
	left := d.left()
	status := &v1alpha1.OmniClusterPlan{
		Hash:     d.Hash(),
		Approved: stillThere(changesIn(d.open()), d.Approved), Diff: plan.BoundedDiff(d.facts.Plan.Diff(changesIn(left))),
	}

	slices.SortStableFunc(left, func(a, b Item) int { return first(a.Change.Destructive) - first(b.Change.Destructive) })

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
			NeedsApproval: d.asksForApproval(item), Kind: v1alpha1.ChangeKind(item.Change.Kind), Held: item.Hold == HoldRollout,
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

// ActionOf is a change's action as the API has it.
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
