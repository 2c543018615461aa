package rollout

import (
	"cmp"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Limits of a policy's status.
const (
	// maxTickets is how many clusters of a policy may have a ticket at the same time.
	maxTickets = 200
	// maxFailedShown is how many failed clusters the status lists.
	maxFailedShown = 50
)

// Result is the result of evaluating all clusters of a policy.
type Result struct {
	// Status is the policy's new status, without its conditions.
	Status v1alpha1.OmniRolloutPolicyStatus
	// Stopped says which clusters stop the rollout; empty if none do.
	Stopped string
	// Next is the next instant at which the clock alone may change the result; zero if there is none.
	Next time.Time
}

// Evaluate computes a policy's status from its clusters: those that it selects, and those that it no longer selects
// but that still have a ticket or changes that it held. The caller marks clusters that another policy selects as
// well.
//
// A ticket in the policy's status is kept until its cluster reports the end of that turn, is gone, or has left with
// nothing to do. New tickets go to the clusters that have waited longest.
func (p *Policy) Evaluate(clusters []Member, now time.Time) Result {
	members := make([]*Member, 0, len(clusters))
	for i := range clusters {
		members = append(members, &clusters[i])
	}

	slices.SortFunc(members, func(a, b *Member) int { return cmp.Compare(a.Name, b.Name) })

	object := p.Object.DeepCopy()
	status := &object.Status
	after := &Policy{Object: object, selector: p.selector, stages: p.stages, freezes: p.freezes, calendarStates: map[calendarKey]CalendarState{}}

	status.ObservedGeneration = object.Generation
	status.Admitted = p.keepTickets(status.Admitted, members)
	status.Failed, status.FailedCount = p.failed(members)
	status.Held = number(members, func(m *Member) bool { return m.isHeld() && !m.Conflict })

	stages, stagesChange := after.stageStatuses(members, now)
	status.Stages = stages

	result := Result{Next: earliest(stagesChange, after.admit(members, now))}

	for i, working := range after.working(members) {
		status.Stages[i].Admitted = int32(working) //nolint:gosec // a fleet
	}

	if after.isStopped() {
		result.Stopped = after.stopped()
	}

	result.Status = *status

	return result
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

// failed returns the clusters that failed and are not healthy yet, without those that are being deleted.
func (p *Policy) failed(members []*Member) (shown []v1alpha1.FailedCluster, all int32) {
	for _, member := range members {
		if !member.countsAsFailed() {
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
