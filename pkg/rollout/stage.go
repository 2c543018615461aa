package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// mostConcurrent is how many clusters of a stage may have changes in progress, whatever a percentage allows.
const mostConcurrent = 100

// StageOf returns the stage of a cluster with these labels: the first one whose selector matches. A stage without a
// selector (nil) takes every cluster. It returns -1 if no stage matches.
func StageOf(selectors []labels.Selector, of labels.Labels) int {
	for i, selector := range selectors {
		if selector == nil || selector.Matches(of) {
			return i
		}
	}

	return -1
}

// ConcurrentOf returns how many of the given number of clusters may have changes in progress at the same time. A
// percentage is rounded down; the result is at least 1 and at most 100. The error names the value.
func ConcurrentOf(limit intstr.IntOrString, clusters int) (int, error) {
	share, percent, err := parseShare(limit)
	if err != nil {
		return 0, err
	}

	if percent {
		share = share * clusters / 100
	}

	return min(max(share, 1), mostConcurrent), nil
}

// NeededOf returns how many of the given number of clusters have to run a version before the next stage takes it. A
// percentage is rounded up; the result is at least 1. If it is more than there are clusters, the stage proves
// nothing. The error names the value.
func NeededOf(least intstr.IntOrString, clusters int) (int, error) {
	share, percent, err := parseShare(least)
	if err != nil {
		return 0, err
	}

	if percent {
		share = (share*clusters + 99) / 100
	}

	return max(share, 1), nil
}

// parseShare reads a number from 1 to 100, or a percentage from 1% to 100%.
func parseShare(value intstr.IntOrString) (number int, percent bool, err error) {
	number = value.IntValue()

	if value.Type == intstr.String {
		text, found := strings.CutSuffix(value.StrVal, "%")

		number, err = strconv.Atoi(text)
		if err != nil || !found {
			return 0, false, fmt.Errorf("%q is neither a number nor a percentage, such as 10%%", value.StrVal)
		}

		percent = true
	}

	if number < 1 || number > 100 {
		return 0, false, fmt.Errorf("%s is not between 1 and 100", value.String())
	}

	return number, percent, nil
}

// returnedPause is how long a cluster that is not healthy waits for its next ticket after it gave one back.
const returnedPause = time.Minute

// keepTickets drops tickets whose turn the cluster has reported as ended, and tickets of clusters that are gone or that
// this policy has nothing to do with any more.
func (p *Policy) keepTickets(tickets []v1alpha1.RolloutTicket, members []*Member) []v1alpha1.RolloutTicket {
	var kept []v1alpha1.RolloutTicket

	for _, ticket := range tickets {
		member, found := memberNamed(members, ticket.Cluster)
		if found && member.UID == ticket.UID && !IsUsed(ticket, member.Rollout) && !p.reportsNoMore(member) {
			kept = append(kept, ticket)
		}
	}

	return kept
}

// reportsNoMore reports whether a cluster has left, and has no changes of this policy's that wait or are at work: it will
// never report the end of a turn of this policy. What another policy lets go on in it takes a slot there.
func (p *Policy) reportsNoMore(m *Member) bool {
	return m.HasLeft && (m.Rollout.State == "" || m.Rollout.Policy != p.Object.Name)
}

// IsUsed reports whether the cluster has reported the end of the turn that the ticket is for.
func IsUsed(ticket v1alpha1.RolloutTicket, status v1alpha1.OmniClusterRollout) bool {
	last := status.Last

	return last != nil && last.Hash == ticket.Hash && !last.Time.Time.Before(ticket.Since.Time)
}

// working counts the clusters of each stage whose changes are in progress, or may begin at any moment. Clusters with
// changes in progress but without a ticket count as well: a user let them begin out of turn, or the policy's status
// was lost. Paused clusters do not count: one cluster that nobody looks after must not keep the others from going on.
func (p *Policy) working(members []*Member) []int {
	working := make([]int, len(p.stages))
	tickets := p.Object.Status.Admitted

	for _, ticket := range tickets {
		i := slices.IndexFunc(p.Object.Spec.Stages, func(s v1alpha1.RolloutStage) bool { return s.Name == ticket.Stage })

		if member, found := memberNamed(members, ticket.Cluster); found {
			switch {
			case member.Paused:
				continue
			case member.Stage >= 0 && !member.HasLeft: // it may have gone to another stage, or its stage may have another name
				i = member.Stage
			}
		}

		if i >= 0 {
			working[i]++
		}
	}

	for _, member := range members {
		if member.isAdmitted() && !member.Paused && !member.HasLeft && member.Stage >= 0 && !hasTicket(tickets, member) {
			working[member.Stage]++
		}
	}

	return working
}

func memberNamed(members []*Member, name string) (*Member, bool) {
	i, found := slices.BinarySearchFunc(members, name, func(m *Member, name string) int { return cmp.Compare(m.Name, name) })
	if !found {
		return nil, false
	}

	return members[i], true
}

func hasTicket(tickets []v1alpha1.RolloutTicket, m *Member) bool {
	return slices.ContainsFunc(tickets, func(t v1alpha1.RolloutTicket) bool { return t.Cluster == m.Name })
}

// free returns how many more clusters of each stage may begin.
func (p *Policy) free(members []*Member) []int {
	free := p.working(members)

	for i, working := range free {
		limit, err := ConcurrentOf(orOne(p.Object.Spec.Stages[i].MaxConcurrent), count(members, func(m *Member) bool { return m.isIn(i) && m.counts() }))
		if err != nil {
			limit = 1 // New has refused it
		}

		free[i] = limit - working
	}

	return free
}

// admit gives tickets to the clusters whose turn it is: those that have waited longest, then by name. It returns when
// the clock alone may admit others.
func (p *Policy) admit(members []*Member, now time.Time) (next time.Time) {
	status, free := &p.Object.Status, p.free(members)

	waiting := slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return !p.waits(m) })
	slices.SortFunc(waiting, byTurn)

	for _, member := range waiting {
		verdict := p.Judge(*member, now)
		next = earliest(next, verdict.Next)

		if verdict.Reason != "" || free[member.Stage] <= 0 || len(status.Admitted) >= maxTickets {
			continue
		}

		ticket := v1alpha1.RolloutTicket{
			Cluster: member.Name, UID: member.UID, Stage: p.Object.Spec.Stages[member.Stage].Name, Hash: member.Rollout.Hash,
			Since: words.StoredTime(now),
		}

		// The new ticket must be later than the cluster's report about an earlier ticket for the same changes, which
		// would end it at once: times are whole seconds, and the report may be from another clock.
		if IsUsed(ticket, member.Rollout) {
			next = earliest(next, member.Rollout.Last.Time.Add(time.Second))

			continue
		}

		if again := member.asksAgain(); now.Before(again) {
			next = earliest(next, again)

			continue
		}

		free[member.Stage]--

		status.Admitted = append(status.Admitted, ticket)
	}

	slices.SortFunc(status.Admitted, func(a, b v1alpha1.RolloutTicket) int { return cmp.Compare(a.Cluster, b.Cluster) })

	return next
}

// waits reports whether a cluster asks this policy for a ticket.
func (p *Policy) waits(m *Member) bool {
	return m.isHeld() && m.Stage >= 0 && m.isIn(m.Stage) && m.Rollout.Policy == p.Object.Name && m.Rollout.Hash != "" &&
		!hasTicket(p.Object.Status.Admitted, m)
}

// byTurn sorts clusters by the time since which they wait, and then by name. A cluster that does not report that time
// comes last.
func byTurn(a, b *Member) int {
	since, other := a.waitsSince(), b.waitsSince()
	if since.IsZero() || other.IsZero() {
		return cmp.Or(compareBool(since.IsZero(), other.IsZero()), cmp.Compare(a.Name, b.Name))
	}

	return cmp.Or(since.Compare(other), cmp.Compare(a.Name, b.Name))
}

// asksAgain is when a cluster that is not healthy, and gave back a ticket for the same changes, gets the next one. The zero
// time for any other: a failed cluster with a fix whose Omni does not answer would take a ticket and give it back each second.
func (m *Member) asksAgain() time.Time {
	last := m.Rollout.Last
	if m.Healthy || last == nil || last.Result != v1alpha1.RolloutReturned || last.Hash != m.Rollout.Hash {
		return time.Time{}
	}

	return last.Time.Add(returnedPause)
}

// waitsSince is since when a cluster waits for its turn; the zero time if it does not say. One that gave a ticket back
// queues anew: a cluster that never uses its turn must not keep the others from theirs.
func (m *Member) waitsSince() time.Time {
	held, last := m.Rollout.HeldSince, m.Rollout.Last

	switch {
	case held == nil:
		return time.Time{}
	case last != nil && last.Result == v1alpha1.RolloutReturned && last.Time.After(held.Time):
		return last.Time.Time
	default:
		return held.Time
	}
}

// compareBool sorts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
