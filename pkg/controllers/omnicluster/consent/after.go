package consent

import (
	"errors"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// After returns the decision after an Apply: each item with the state that it has now. err is the error of the Apply.
func (d Decision) After(result plan.Result, err error) Decision {
	d.Items, d.applied, d.created = slices.Clone(d.Items), true, result.Created

	key := func(change plan.Change) string { return string(change.Action) + "|" + change.Key() }
	index := make(map[string][]int, len(d.Items))

	for i, item := range d.Items {
		index[key(item.Change)] = append(index[key(item.Change)], i)
	}

	mark := func(change plan.Change, set func(*Item)) {
		if len(index[key(change)]) == 0 {
			index[key(change)] = []int{len(d.Items)}
			d.Items = append(d.Items, Item{Change: change})
		}

		for _, i := range index[key(change)] {
			set(&d.Items[i])
		}
	}

	for _, change := range result.Waiting { // with what it waits for
		mark(change, func(item *Item) { item.Change, item.State, item.Hold = change, Held, HoldOmni })
	}

	// The last statement counts: a change is done only if nothing else was reported about it.
	for _, group := range []struct {
		changes []plan.Change
		set     func(*Item)
	}{
		{result.Applied, func(item *Item) {
			item.State, item.Hold, item.Took = Done, HoldNone, item.Change.Action != plan.ActionDestroy
		}},
		{result.Pending, func(item *Item) { item.State, item.Hold = Requested, HoldOmni }},
		{result.Held, func(item *Item) {
			if item.Hold == HoldNone {
				item.Hold = HoldAnother
			}

			item.State = Held
		}},
		{result.Skipped, func(item *Item) { item.State, item.Hold = Held, HoldUntried }},
		{changesOf(result.Refused), func(item *Item) { item.State, item.Hold = Held, HoldRefused }},
		{failedIn(result, err), func(item *Item) { item.State, item.Hold = Held, HoldFailed }},
		{result.Requested, func(item *Item) { item.Took = true }},
	} {
		for _, change := range group.changes {
			mark(change, group.set)
		}
	}

	return d
}

// IsRefusal reports whether the error of an Apply only repeats the refusals that its result lists: everything else was
// tried.
func IsRefusal(result plan.Result, err error) bool {
	var failed *plan.ChangeError

	return errors.As(err, &failed) && slices.Contains(result.Refused, failed)
}

func changesOf(refused []*plan.ChangeError) []plan.Change {
	changes := make([]plan.Change, 0, len(refused))
	for _, one := range refused {
		changes = append(changes, one.Change)
	}

	return changes
}

// failedIn returns the change that stopped an Apply; none if the Apply was not stopped.
func failedIn(result plan.Result, err error) []plan.Change {
	var failed *plan.ChangeError

	if IsRefusal(result, err) || !errors.As(err, &failed) {
		return nil
	}

	return []plan.Change{failed.Change}
}

// Left returns the changes that are not done, for whatever reason.
func (d Decision) Left() []plan.Change { return changesIn(d.left()) }

func (d Decision) left() []Item {
	left := slices.DeleteFunc(slices.Clone(d.Items), func(item Item) bool { return item.State == Done })
	slices.SortStableFunc(left, func(a, b Item) int { return a.order() - b.order() })

	return left
}

func changesIn(items []Item) []plan.Change {
	changes := make([]plan.Change, 0, len(items))
	for _, item := range items {
		changes = append(changes, item.Change)
	}

	return changes
}

// Done returns the changes that Omni took.
func (d Decision) Done() []plan.Change {
	return d.where(func(item Item) bool { return item.State == Done })
}

// Untried returns the changes that were not tried because of another change.
func (d Decision) Untried() []plan.Change {
	return d.where(func(item Item) bool { return item.Hold == HoldUntried })
}

// WaitingForOmni returns the changes that cannot be made before Omni is done with something else.
func (d Decision) WaitingForOmni() []plan.Change {
	return d.where(func(item Item) bool { return item.State == Held && item.Hold == HoldOmni })
}

// Leaving returns the destructions that Omni has begun, and the changes that follow them.
func (d Decision) Leaving() []plan.Change {
	return slices.Concat(d.where(func(item Item) bool { return item.State == Requested }), d.Untried())
}

// Unconsented returns the changes that an Apply had no consent for, and those that its result does not mention.
func (d Decision) Unconsented() []plan.Change {
	return d.where(func(item Item) bool {
		return item.State == Planned || item.Hold == HoldApproval || item.Hold == HoldSettling || item.Hold == HoldAnother
	})
}
