package consent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// State is the state of a change.
type State string

// The states.
const (
	// Planned means that the change may be made now.
	Planned State = "planned"
	// Held means that the change is not made; Item.Hold has the reason.
	Held State = "held"
	// Requested means that Omni has begun the destruction, in this run or before.
	Requested State = "requested"
	// Done means that Omni took the change; for a destruction, that it is over.
	Done State = "done"
)

// Hold is what a change waits for.
type Hold string

// The holds. Up to HoldObserved they are about the whole plan.
const (
	HoldNone         Hold = ""
	HoldSecondWriter Hold = "something else writes the cluster, too"
	HoldSuspended    Hold = "the object is suspended"
	HoldLocked       Hold = "the cluster is locked in Omni"
	HoldObserved     Hold = "the change policy is Observe"
	HoldNamespace    Hold = "the namespace is being deleted"
	HoldDocuments    Hold = "documents that may still arrive"
	HoldSettling     Hold = "the settle time"
	HoldApproval     Hold = "an approval"
	HoldAnother      Hold = "another change that is held"
	HoldUntried      Hold = "another change that was refused, failed, or is not over"
	HoldRollout      Hold = "its turn in a rollout"
	HoldOmni         Hold = "Omni"
	HoldRefused      Hold = "Omni refused it"
	HoldFailed       Hold = "it failed"
)

// Need is what a change needs before it may be made.
type Need string

// The needs. A change that takes nothing away which may be missed, or that has begun, has none.
const (
	NeedsNothing  Need = ""
	NeedsSettling Need = "settling" // the documents asked for it clearly enough
	NeedsApproval Need = "approval" // somebody has to approve it
)

// Item is one change of a plan with the decision about it.
type Item struct {
	Change plan.Change
	State  State
	Hold   Hold
	Needs  Need
	// WhyApproval is the reason why the documents are not enough for this change: this object did not make what it
	// destroys, what is to take its place cannot come, or no document is enough for any change now. Empty if they are, or if only
	// the policy wants an approval.
	WhyApproval string
	// Took is true if Omni took the change in this run; for a destruction, if it begins in this run.
	Took bool
}

// hasBegun reports whether the destruction can no longer be stopped. Then it needs no approval.
func (i Item) hasBegun() bool {
	return i.Change.TearingDown || i.Took && i.Change.Action == plan.ActionDestroy
}

// waitsForUpgrade reports whether the change is a version that Omni takes when it has finished the upgrade of the other one.
func (i Item) waitsForUpgrade() bool { return i.Hold == HoldOmni && i.Change.Part != "" }

// The order in which the status lists the changes that are left.
const (
	orderHeld = iota
	orderUntried
	orderRequested
	orderWaitsForOmni
	orderRefused
	orderFailed
)

// order returns the place of an item in the status.
func (i Item) order() int {
	if i.State == Requested {
		return orderRequested
	}

	switch i.Hold {
	case HoldUntried:
		return orderUntried
	case HoldOmni:
		return orderWaitsForOmni
	case HoldRefused:
		return orderRefused
	case HoldFailed:
		return orderFailed
	default:
		return orderHeld
	}
}

// itemsOf returns the items of a plan. A destructive change needs an approval unless the policy is Apply; it always
// needs one if no document is enough for the reason that whyUntrusted has, if this object did not make what the change
// destroys, and if what is to take its place cannot come: then the list has a mistyped machine, or one that comes later. Settings whose document is gone only settle: a prune deletes documents before the OmniCluster, which may stay.
func itemsOf(planned *plan.Plan, record Record, policy v1alpha1.ChangePolicy, whyUntrusted string) []Item {
	items := make([]Item, 0, len(planned.Changes)+len(planned.WaitingForOmni))
	trusts := whyUntrusted == "" && (policy == v1alpha1.ChangePolicyApply || policy == "")

	for _, change := range planned.Changes {
		item := Item{Change: change, State: Planned}

		if change.Destructive && !change.TearingDown {
			item.WhyApproval = cmp.Or(record.foreign(change, planned), change.Lacks)
			item.Needs = NeedsApproval

			if trusts && item.WhyApproval == "" {
				item.Needs = NeedsSettling
			}

			if whyUntrusted != "" {
				item.WhyApproval = whyUntrusted
			}
		} else if change.DocumentGone && !change.TearingDown {
			item.Needs = NeedsSettling
		}

		items = append(items, item)
	}

	for _, change := range planned.WaitingForOmni {
		items = append(items, Item{Change: change, State: Held, Hold: HoldOmni})
	}

	return items
}

// where returns the changes of the items that a filter accepts, in the plan's order.
func (d Decision) where(filter func(Item) bool) []plan.Change {
	var found []plan.Change

	for _, item := range d.Items {
		if filter(item) {
			found = append(found, item.Change)
		}
	}

	return found
}

// needing returns the changes with a need. What is left alone, because the namespace is being deleted, does not settle.
func (d Decision) needing(need Need) []plan.Change {
	return d.where(func(item Item) bool {
		return item.Needs == need && !(need == NeedsSettling && d.leavesAlone(item.Change))
	})
}

// needingConsent returns the changes that had not begun when the plan was made and that do not go ahead at once, those that need an
// approval first.
func (d Decision) needingConsent() []plan.Change {
	return slices.Concat(d.needing(NeedsApproval), d.needing(NeedsSettling))
}

// destructive returns the destructive changes among them.
func (d Decision) destructive() []plan.Change {
	return slices.DeleteFunc(d.needingConsent(), func(change plan.Change) bool { return !change.Destructive })
}

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
