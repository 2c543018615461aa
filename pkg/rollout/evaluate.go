// Package rollout decides by an OmniRolloutPolicy when changes of clusters may begin. It is pure: it does no I/O, and
// the caller passes the current time.
//
// Two controllers use it. The controller of OmniRolloutPolicies calls Evaluate with all clusters of a policy: the
// result is the policy's new status, with a ticket for each cluster whose changes may begin. The controller of
// OmniClusters calls Policy.Judge, which says what one cluster's changes wait for, by the status that the other
// controller has written. Only when Judge finds nothing does it use the cluster's ticket.
//
//	clusters -> Evaluate -> status.stages, status.admitted -> Judge -> may begin, or what it waits for
//
// Calendar says when a change may begin: in weekly windows of a time zone, and never during a freeze. Windows limit when something
// begins, not when it ends. The windows of one Calendar are joined: if one ends while another is open, the calendar stays open.
package rollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// clockTolerance is how far the clocks of two processes may differ while policies are in force: each by half of it from the
// API server's.
const clockTolerance = time.Minute

// NotAfter reads a time of a status as no later than now. A later one was written while the clock was ahead: what is counted
// from it would not end before the clock gets there.
func NotAfter(t *metav1.Time, now time.Time) *metav1.Time {
	if t == nil || !t.After(now) {
		return t
	}

	return seconds(now)
}

// isProved reports whether a version was proved by now. One that was proved later was proved while the clock was ahead: it
// may not have run for the soak time.
func isProved(one v1alpha1.QualifiedVersion, now time.Time) bool {
	return !one.Since.After(now.Add(clockTolerance))
}
