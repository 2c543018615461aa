package consent

import (
	"cmp"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
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
