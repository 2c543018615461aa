package rollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout/stage"
)

// Limits of a policy's status.
const (
	// maxTickets is how many clusters of a policy may be at work at once.
	maxTickets = 200
	// maxFailedShown is how many failed clusters are named.
	maxFailedShown = 50
)

// Result is what a look at all clusters of a policy found.
type Result struct {
	// Status is what the policy's status should be, but for its conditions.
	Status v1alpha1.OmniRolloutPolicyStatus
	// Stopped says which clusters stop the rollout; empty if none do.
	Stopped string
	// Next is the next instant at which the clock alone may change the result; zero if there is none.
	Next time.Time
}

// Evaluate looks at all clusters of a policy: those that it selects, and those that it does not select any more and that
// still have a ticket or changes that it held. A cluster that another policy selects, too, is marked so by the caller.
//
// Tickets that the policy's status has are kept until their cluster says that it is done with them, or is gone. New ones
// go to the clusters that have waited longest.
func (p *Policy) Evaluate(members []Member, now time.Time) Result {
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })

	object := p.Object.DeepCopy()
	object.Status.ObservedGeneration = object.Generation
	object.Status.Admitted = keepTickets(object.Status.Admitted, members)
	object.Status.Failed, object.Status.FailedCount = p.failed(members)
	object.Status.Held = int32(count(members, func(m Member) bool { return m.isHeld() && !m.Conflict })) //nolint:gosec // a fleet

	after := &Policy{Object: object, selector: p.selector, stages: p.stages, freezes: p.freezes}
	object.Status.Stages, object.Status.Conditions = p.stageStatuses(members, now), p.Object.Status.Conditions

	result := Result{Next: after.admit(members, now)}

	if object.Status.FailedCount > object.Spec.MaxFailed {
		result.Stopped = after.stopped()
	}

	for i := range object.Status.Stages {
		one := &object.Status.Stages[i]
		one.Admitted = int32(count(object.Status.Admitted, func(t v1alpha1.RolloutTicket) bool { return t.Stage == one.Name })) //nolint:gosec // bounded
		result.Next = earliest(result.Next, timeOf(one.NextChange), timeOf(one.PromotedUntil))

		for _, soaking := range one.Soaking {
			result.Next = earliest(result.Next, timeOf(soaking.Until))
		}
	}

	result.Status = object.Status

	return result
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}

	return t.Time
}

func count[T any](items []T, has func(T) bool) int {
	found := 0

	for _, item := range items {
		if has(item) {
			found++
		}
	}

	return found
}

// keepTickets drops the tickets of which the cluster says that it is done with them, and those of clusters that are gone.
func keepTickets(tickets []v1alpha1.RolloutTicket, members []Member) []v1alpha1.RolloutTicket {
	var kept []v1alpha1.RolloutTicket

	for _, ticket := range tickets {
		i, found := slices.BinarySearchFunc(members, ticket.Cluster, func(m Member, name string) int { return cmp.Compare(m.Name, name) })
		if found && members[i].UID == ticket.UID && !IsUsed(ticket, members[i].Rollout) {
			kept = append(kept, ticket)
		}
	}

	return kept
}

// IsUsed reports whether a cluster has said how the turn ended that a ticket is for.
func IsUsed(ticket v1alpha1.RolloutTicket, status v1alpha1.OmniClusterRollout) bool {
	last := status.Last

	return last != nil && last.Hash == ticket.Hash && !last.Time.Time.Before(ticket.Since.Time)
}

// failed are the clusters that failed and are not well yet.
func (p *Policy) failed(members []Member) (shown []v1alpha1.FailedCluster, all int32) {
	for _, member := range members {
		if !member.hasFailed() || member.Left {
			continue
		}

		all++

		if len(shown) < maxFailedShown {
			failure := member.Rollout.Failure
			shown = append(shown, v1alpha1.FailedCluster{Cluster: member.Name, Stage: member.Rollout.Stage, Since: failure.Time, Message: failure.Message})
		}
	}

	return shown, all
}

// admit gives tickets to those whose turn it is: the oldest first, then by name. It says when the clock may let others in.
func (p *Policy) admit(members []Member, now time.Time) (next time.Time) {
	status := &p.Object.Status
	free := make([]int, len(p.stages))

	for i := range p.stages {
		limit, err := stage.Concurrent(orOne(p.Object.Spec.Stages[i].MaxConcurrent), count(members, func(m Member) bool { return m.Stage == i && m.counts() }))
		if err != nil {
			limit = 1 // New has refused it
		}

		name := p.Object.Spec.Stages[i].Name
		free[i] = limit - count(status.Admitted, func(t v1alpha1.RolloutTicket) bool { return t.Stage == name })
	}

	waiting := slices.Clone(members)
	slices.SortStableFunc(waiting, func(a, b Member) int { return a.heldSince().Compare(b.heldSince()) })

	for _, member := range waiting {
		if !p.waits(member) {
			continue
		}

		verdict := p.Judge(member, now)
		next = earliest(next, verdict.Next)

		if verdict.Reason != "" || free[member.Stage] <= 0 || len(status.Admitted) >= maxTickets {
			continue
		}

		free[member.Stage]--

		status.Admitted = append(status.Admitted, v1alpha1.RolloutTicket{
			Cluster: member.Name, UID: member.UID, Stage: p.Object.Spec.Stages[member.Stage].Name, Hash: member.Rollout.Hash,
			Since: metav1.Time{Time: now.UTC().Truncate(time.Second)},
		})
	}

	slices.SortFunc(status.Admitted, func(a, b v1alpha1.RolloutTicket) int { return cmp.Compare(a.Cluster, b.Cluster) })

	return next
}

// waits reports whether a cluster asks this policy for a ticket.
func (p *Policy) waits(m Member) bool {
	hasTicket := slices.ContainsFunc(p.Object.Status.Admitted, func(t v1alpha1.RolloutTicket) bool { return t.Cluster == m.Name })

	return m.isHeld() && !m.Left && !m.Conflict && !hasTicket && m.Stage >= 0 && m.Rollout.Policy == p.Object.Name && m.Rollout.Hash != ""
}

func (m Member) heldSince() time.Time { return timeOf(m.Rollout.HeldSince) }
