package consent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Outcome describes what the held changes wait for; it continues if none is held. It stays the same while other changes are
// made, except for the hash to approve.
func (d Decision) Outcome() loop.Outcome {
	planned := d.facts.Plan

	switch {
	case d.holdOfAll == HoldSecondWriter:
		return loop.Stall(v1alpha1.ReasonSecondWriter, "%s", d.facts.SecondWriter)
	case d.holdOfAll == HoldLocked:
		return loop.Stall(v1alpha1.ReasonRemoteLocked,
			"the cluster is locked in Omni (annotation omni.sidero.dev/cluster-locked) and only observed; unlock it there")
	case d.holdOfAll == HoldSuspended && !planned.Empty():
		return loop.Wait(0, v1alpha1.ReasonSuspended, "%s; spec.suspend is set, nothing is applied", d.summaryWithNames())
	case slices.ContainsFunc(d.Items, func(item Item) bool { return item.Hold == HoldObserved }):
		return loop.Stall(v1alpha1.ReasonObserving, "%s; the change policy is Observe, nothing is applied", d.summaryWithNames())
	}

	if d.HasChangesToTry() {
		if outcome := d.destructiveOutcome(); !outcome.Continues() {
			return outcome.Within(d.joinsIn())
		}
	}

	if len(d.leftAlone()) > 0 {
		text := d.summaryWithNames() + "; the namespace is being deleted, and the cluster in Omni is left as it is until the OmniCluster itself is deleted"
		if d.lacking != "" && len(d.destructive()) > 0 {
			text += ", also what is approved: " + d.lacking
		}

		return loop.Wait(d.joinsIn(), v1alpha1.ReasonNamespaceDeleting, "%s", text)
	}

	return d.documentsOutcome()
}

// destructiveOutcome is Outcome for a plan that may be applied. Changes that the documents ask for wait for the settle
// time, the others for an approval. The settle time comes first, because it ends by itself.
func (d Decision) destructiveOutcome() loop.Outcome {
	waitsForApproval := len(d.where(d.asksForApproval)) > 0
	waitsToSettle := len(d.needing(NeedsSettling)) > 0 && !d.allSettled
	settlesIn := max(d.Settling.remaining(d.facts.Now, d.facts.SettleTime), time.Millisecond)

	switch {
	case waitsToSettle && waitsForApproval:
		return loop.Wait(settlesIn, v1alpha1.ReasonWaitingToSettle,
			"%s; those that were asked for %s; these wait for approval: %s; %s",
			d.summaryWithDestructive(), d.untilSettled(), d.nameNeedApproval(), d.howToApprove())
	case waitsToSettle:
		return loop.Wait(settlesIn, v1alpha1.ReasonWaitingToSettle,
			"%s; those that destroy %s", d.summaryWithNames(), d.untilSettled())
	case waitsForApproval:
		return loop.Stall(v1alpha1.ReasonAwaitingApproval, "%s; these wait for approval: %s; %s%s",
			d.summaryWithDestructive(), d.nameNeedApproval(), d.othersLeftAlone(), d.howToApprove())
	default:
		return loop.Proceed()
	}
}

// untilSettled returns the part of a message that says when changes that settle begin, and how they are stopped.
func (d Decision) untilSettled() string {
	return fmt.Sprintf("begin at %s if nothing changes before; to stop them: kubectl patch omnicluster %s -n %s --field-manager=%s --type=merge -p '{\"spec\":{\"suspend\":true}}'",
		words.Time(d.Settling.ends(d.facts.SettleTime)), d.facts.Cluster.Name, d.facts.Cluster.Namespace, v1alpha1.FieldManagerByHand)
}

// Summary returns the number of changes, and the owner whose cluster is about to be adopted.
func (d Decision) Summary() string { return Summary(d.facts.Plan) + d.facts.Claim.Takeover() }

// summaryWithDestructive returns what is missing, the number of changes, and how many of them destroy something.
func (d Decision) summaryWithDestructive() string {
	text := d.whatIsMissing() + Summary(d.facts.Plan)
	if count := len(d.destructive()); count > 0 {
		text = fmt.Sprintf("%s (%d destructive)", text, count)
	}

	return text
}

// summaryWithNames is summaryWithDestructive with the names of what would be destroyed, or is perhaps not meant.
func (d Decision) summaryWithNames() string {
	text := d.summaryWithDestructive()
	if named := ChangeNames(d.needingConsent()); named != "" {
		text += " (" + named + ")"
	}

	return text + d.slips(d.needingConsent())
}

// slips returns the part of a message that says why changes look like a slip; empty if they do not.
func (d Decision) slips(changes []plan.Change) string {
	var slips []string

	for _, change := range changes {
		if slip := d.facts.Slips[change.Set]; slip != "" && !slices.Contains(slips, slip) {
			slips = append(slips, slip)
		}
	}

	if len(slips) == 0 {
		return ""
	}

	return ": " + words.Few(slips, maxNamed, "; ")
}

// Warning returns what the documents ask to destroy, once the settle time is over, for the event when it begins. before are the settle
// times of the run before. Empty if nothing begins to settle in this run, or only what destroys nothing.
func (d Decision) Warning(before Settling) string {
	settling := slices.DeleteFunc(d.needing(NeedsSettling), func(change plan.Change) bool { return !change.Destructive })
	if len(settling) == 0 || !d.Settling.beginsAfter(before) {
		return ""
	}

	return fmt.Sprintf("will be destroyed in Omni after the settle time: %s%s. To keep it, take the change back, or set spec.suspend: true meanwhile",
		ChangeNames(settling), d.slips(settling))
}

// nameNeedApproval lists a few of the changes that need approval, with the reasons.
func (d Decision) nameNeedApproval() string {
	var named []string

	for _, item := range d.Items {
		if item.Needs != NeedsApproval {
			continue
		}

		text := item.Change.String()
		if item.WhyApproval != "" && item.WhyApproval != item.Change.Lacks { // whatIsMissing has told that
			text += ": " + item.WhyApproval
		}

		named = append(named, text)
	}

	return words.Few(named, maxNamed, "; ")
}

// whatIsMissing returns the beginning of a message: which machines cannot come in the place of what waits for approval, and what
// helps. Empty if none is missing.
func (d Decision) whatIsMissing() string {
	var missing []string

	for _, item := range d.Items {
		if lacks := item.Change.Lacks; lacks != "" && d.asksForApproval(item) && !slices.Contains(missing, lacks) {
			missing = append(missing, lacks)
		}
	}

	if len(missing) == 0 {
		return ""
	}

	return words.Few(missing, maxNamed, "; ") +
		": nothing leaves for it. Correct the list, or have the machine come, and the change goes on by itself. "
}

// othersLeftAlone returns the part of a message that says how many changes an approval does not make.
func (d Decision) othersLeftAlone() string {
	switch count := len(d.leftAlone()); count {
	case 0:
		return ""
	case 1:
		return "1 other is not made, because the namespace is being deleted; "
	default:
		return fmt.Sprintf("%d others are not made, because the namespace is being deleted; ", count)
	}
}

// howToApprove returns the part of a message that describes how to approve a plan, or that an existing approval is for
// another plan.
func (d Decision) howToApprove() string { return howToApprove(d.facts.Cluster, d.Hash()) }

func howToApprove(cluster *v1alpha1.OmniCluster, hash string) string {
	text := ""
	if approved := cluster.Spec.ApprovedPlan; approved != "" && approved != hash {
		text = fmt.Sprintf("spec.approvedPlan (%.12s...) approves another plan, the current one is %s; ", approved, hash)
	}

	return text + fmt.Sprintf(`read status.plan, then approve it: kubectl patch omnicluster %s -n %s --field-manager=%s --type=merge -p '{"spec":{"approvedPlan":"%s"}}'`,
		cluster.Name, cluster.Namespace, v1alpha1.FieldManagerByHand, hash)
}

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
