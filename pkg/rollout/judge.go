package rollout

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// MaxPromotion is how far ahead a promotion may reach.
const MaxPromotion = 7 * 24 * time.Hour

// Verdict says what a cluster's changes wait for.
type Verdict struct {
	// Reason is a reason of the condition Held. Empty: the changes may begin as soon as the cluster has a ticket.
	Reason string
	// Message explains the reason to people.
	Message string
	// NotBefore is the earliest time at which the changes may begin; zero if it is not known.
	NotBefore time.Time
	// Next is the next time at which the verdict may change without any event; zero if there is none.
	Next time.Time
}

// Judge says what the changes of a cluster wait for, except for a ticket. It uses the policy's spec, and the stages
// in its status. Rules are tried in order; the first one that holds the changes gives the verdict.
func (p *Policy) Judge(m Member, now time.Time) Verdict {
	if m.Stage < 0 {
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: "no stage takes the cluster"}
	}

	times, err := p.times(m.Stage, m.Zone, now)
	if err != nil {
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: fmt.Sprintf("annotation %s: %v", v1alpha1.AnnotationTimeZone, err)}
	}

	verdict := Verdict{}

	for _, rule := range []func(Member, CalendarState, time.Time) Verdict{p.judgePolicy, p.judgeFreeze, p.judgeCluster, p.judgeStages, p.judgeWindow} {
		one := rule(m, times, now)
		verdict.Next = earliest(verdict.Next, one.Next, one.NotBefore)

		if one.Reason != "" {
			verdict.Reason, verdict.Message, verdict.NotBefore = one.Reason, one.Message, one.NotBefore

			break
		}
	}

	verdict.Next = earliest(verdict.Next, times.Next, p.freezeChanges(now))

	return verdict
}

// times returns the state of a stage's calendar at a time. The times in it are in the zone of the windows.
func (p *Policy) times(stage int, zone string, now time.Time) (CalendarState, error) {
	key := calendarKey{stage, zone}
	if known, found := p.calendarStates[key]; found {
		return known, nil
	}

	calendar, err := p.calendar(stage, zone)
	if err != nil {
		return CalendarState{}, err
	}

	times := calendar.At(now)

	// The start of a window is in the window's zone; the end of a freeze is in UTC.
	if times.Opens.Location() == time.UTC && !times.Opens.IsZero() {
		times.Opens = times.Opens.In(zoneOf(calendar, zone))
	}

	if p.calendarStates != nil {
		p.calendarStates[key] = times
	}

	return times, nil
}

// zoneOf returns the zone in which messages show times: that of the windows, or the cluster's own.
func zoneOf(calendar Calendar, zone string) *time.Location {
	if len(calendar.Windows) > 0 {
		return calendar.Windows[0].Zone
	}

	if location, err := Zone(zone); err == nil {
		return location
	}

	return time.UTC
}

// freezeChanges returns the next time at which a freeze begins or ends. The reason of the verdict changes then, even
// if the changes go on waiting.
func (p *Policy) freezeChanges(now time.Time) time.Time {
	var next time.Time

	for _, freeze := range p.freezes {
		for _, edge := range []time.Time{freeze.From, freeze.Until} {
			if edge.After(now) {
				next = earliest(next, edge)
			}
		}
	}

	return next
}

// judgePolicy checks the policy as a whole.
func (p *Policy) judgePolicy(Member, CalendarState, time.Time) Verdict {
	conditions := p.Object.Status.Conditions

	switch {
	case p.Object.Status.ObservedGeneration != p.Object.Generation:
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: "the policy has changed, and was not looked at yet"}
	case apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled):
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: "the policy is stalled: " + apimeta.FindStatusCondition(conditions, v1alpha1.ConditionStalled).Message}
	case p.Object.Spec.Hold:
		return Verdict{Reason: v1alpha1.ReasonPolicyOnHold, Message: fmt.Sprintf("spec.hold of the policy is set, until it is released: kubectl omni hold %s -n %s --release",
			p.Object.Name, p.Object.Namespace)}
	default:
		return Verdict{}
	}
}

// judgeFreeze checks freezes. If the windows are closed when the freeze ends, the message says when they open.
func (p *Policy) judgeFreeze(m Member, times CalendarState, now time.Time) Verdict {
	i := slices.IndexFunc(p.freezes, func(f Freeze) bool {
		return f.Name == times.Freeze && !now.Before(f.From) && now.Before(f.Until)
	})
	if i < 0 {
		return Verdict{}
	}

	until := p.freezes[i].Until
	if !times.Opens.IsZero() {
		until = until.In(times.Opens.Location())
	}

	verdict := Verdict{Reason: v1alpha1.ReasonFrozen, Message: fmt.Sprintf("until %s by the freeze %q", shownTime(until), times.Freeze), NotBefore: times.Opens}
	if times.Opens.After(until) {
		verdict.Message += "; nothing begins before " + shownTime(times.Opens)
	}

	return p.withPromotion(verdict, m, times, now)
}

// judgeCluster checks the cluster itself, and how many clusters have failed. The fix of a failed change may begin
// although the cluster is not healthy.
func (p *Policy) judgeCluster(m Member, _ CalendarState, _ time.Time) Verdict {
	switch {
	case m.isFix():
		return Verdict{}
	case m.hasFailed():
		return Verdict{
			Reason:  v1alpha1.ReasonRolloutFailed,
			Message: "these changes failed here (" + m.Rollout.Failure.Message + "); fix them in the objects, or let them begin once more: " + p.overrideCommand(m),
		}
	case !m.Healthy:
		return Verdict{
			Reason: v1alpha1.ReasonClusterNotReady,
			Message: "the cluster has to run well before a change begins; if it needs the change for that, let it begin all the same: " +
				p.overrideCommand(m),
		}
	case p.isStopped():
		return Verdict{
			Reason:  v1alpha1.ReasonRolloutStopped,
			Message: p.stopped() + ", or let this cluster begin all the same: " + p.overrideCommand(m),
		}
	default:
		return Verdict{}
	}
}

func (p *Policy) judgeWindow(m Member, times CalendarState, now time.Time) Verdict {
	if times.Open {
		return Verdict{}
	}

	verdict := Verdict{Reason: v1alpha1.ReasonOutsideWindow, Message: "until " + shownTime(times.Opens), NotBefore: times.Opens}

	return p.withPromotion(verdict, m, times, now)
}

// afterStages says what comes after the earlier stages.
func (p *Policy) afterStages(m Member) string {
	stage := p.Object.Spec.Stages[m.Stage]
	if len(stage.Windows) == 0 {
		return ""
	}

	return fmt.Sprintf("; then in a window of stage %q", stage.Name)
}

// overrideCommand returns the command that lets the changes of a cluster begin at once.
func (p *Policy) overrideCommand(m Member) string {
	return fmt.Sprintf("kubectl omni override %s -n %s --reason <why>", m.Name, p.Object.Namespace)
}

func (p *Policy) isStopped() bool { return p.Object.Status.FailedCount > p.Object.Spec.MaxFailed }

// stopped names the clusters that stop the rollout, and what makes it go on.
func (p *Policy) stopped() string { return p.failures() + "; fix them in Git" }

// failures names the clusters that failed.
func (p *Policy) failures() string {
	text := fmt.Sprintf("%d failed (maxFailed is %d)", p.Object.Status.FailedCount, p.Object.Spec.MaxFailed)

	const shown = 3
	for i, failed := range p.Object.Status.Failed {
		if i == shown {
			return text + ", and others"
		}

		text += separator(i) + failed.Cluster

		if failed.Message != "" {
			text += " (" + failed.Message + ")"
		}
	}

	return text
}

func separator(i int) string {
	if i == 0 {
		return ": "
	}

	return ", "
}

// shownTime formats a time for people, in its own zone; there may be none.
func shownTime(t time.Time) string {
	if t.IsZero() {
		return "further notice"
	}

	return words.TimeWithZone(t)
}

// earliest returns the first of several times, ignoring zero times.
func earliest(times ...time.Time) time.Time {
	var first time.Time

	for _, one := range times {
		if !one.IsZero() && (first.IsZero() || one.Before(first)) {
			first = one
		}
	}

	return first
}
