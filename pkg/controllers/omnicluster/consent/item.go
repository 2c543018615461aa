package consent

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// State is how far a change has come.
type State string

// The states.
const (
	// Planned may be made now.
	Planned State = "planned"
	// Held is not made: Item.Hold says why.
	Held State = "held"
	// Requested is a destruction that Omni has begun, in this run or before.
	Requested State = "requested"
	// Done is what Omni took; of a destruction: it is over.
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

// The needs. What destroys nothing, and what has begun, has none.
const (
	NeedsNothing  Need = ""
	NeedsSettling Need = "settling" // the documents asked for it clearly enough
	NeedsApproval Need = "approval" // somebody has to approve it
)

// Item is one change of a plan with all that was decided of it.
type Item struct {
	Change plan.Change
	State  State
	Hold   Hold
	Needs  Need
	// Foreign says why the documents do not suffice; empty if they do, or if only
	// the policy asks for an approval.
	Foreign string
	// Took is true if Omni took the change in this very run; of a destruction: that it
	// begins.
	Took bool
}

// hasBegun reports whether the destruction cannot be stopped any more. It needs no
// approval then.
func (i Item) hasBegun() bool {
	return i.Change.TearingDown || i.Took && i.Change.Action == plan.ActionDestroy
}

// order sorts what is left for the status: what is held, what was not tried, what
// goes, what waits for Omni, what it refused, and what failed.
func (i Item) order() int {
	if i.State == Requested {
		return 2
	}

	switch i.Hold {
	case HoldUntried:
		return 1
	case HoldOmni:
		return 3
	case HoldRefused:
		return 4
	case HoldFailed:
		return 5
	default:
		return 0
	}
}

// itemsOf makes the items of a plan. A destructive change needs an approval unless
// the policy is Apply, while a cluster is taken over, and always if this object did
// not make what it destroys.
func itemsOf(planned *plan.Plan, record Record, policy v1alpha1.ChangePolicy, adopting bool) []Item {
	items := make([]Item, 0, len(planned.Changes)+len(planned.Waiting))
	trusts := !adopting && (policy == v1alpha1.ChangePolicyApply || policy == "")

	for _, change := range planned.Changes {
		item := Item{Change: change, State: Planned}

		if change.Destructive && !change.TearingDown {
			item.Foreign = record.foreign(change, planned.Live)
			item.Needs = NeedsApproval

			if trusts && item.Foreign == "" {
				item.Needs = NeedsSettling
			}

			if adopting {
				item.Foreign = "the cluster is being adopted"
			}
		}

		items = append(items, item)
	}

	for _, change := range planned.Waiting {
		items = append(items, Item{Change: change, State: Held, Hold: HoldOmni})
	}

	return items
}

// where are the changes of the items that a filter lets through, in the plan's order.
func (d Decision) where(filter func(Item) bool) []plan.Change {
	var found []plan.Change

	for _, item := range d.Items {
		if filter(item) {
			found = append(found, item.Change)
		}
	}

	return found
}

func (d Decision) needing(need Need) []plan.Change {
	return d.where(func(item Item) bool { return item.Needs == need })
}

// destructive are the destructive changes that had not begun when the plan was made,
// those that need an approval first.
func (d Decision) destructive() []plan.Change {
	return slices.Concat(d.needing(NeedsApproval), d.needing(NeedsSettling))
}
