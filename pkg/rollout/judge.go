package rollout

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout/window"
)

// MaxPromotion is how far ahead a promotion may reach.
const MaxPromotion = 7 * 24 * time.Hour

// Verdict is what a cluster's changes wait for.
type Verdict struct {
	// Reason is why they wait, a reason of the condition Held. Empty: they may begin as soon as there is a ticket.
	Reason string
	// Message says it for people.
	Message string
	// NotBefore is the next instant at which they may begin as far as it is known; zero if it is not.
	NotBefore time.Time
	// Next is the next instant at which the clock alone may change the verdict; zero if there is none.
	Next time.Time
}

// Judge says what the changes of a cluster wait for, but for a free turn: by the policy as it is, and by what its status
// says of the stages. The first rule that holds them back is the answer.
func (p *Policy) Judge(m Member, now time.Time) Verdict {
	if m.Stage < 0 {
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: "no stage takes the cluster"}
	}

	calendar, err := p.calendar(m.Stage, m.Zone)
	if err != nil {
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: fmt.Sprintf("annotation %s: %v", v1alpha1.AnnotationTimeZone, err)}
	}

	times := calendar.At(now)
	verdict := Verdict{}

	for _, rule := range []func(Member, window.State, time.Time) Verdict{p.judgePolicy, p.judgeFreeze, p.judgeCluster, p.judgeStages, p.judgeWindow} {
		one := rule(m, times, now)
		verdict.Next = earliest(verdict.Next, one.Next, one.NotBefore)

		if one.Reason != "" {
			verdict.Reason, verdict.Message, verdict.NotBefore = one.Reason, one.Message, one.NotBefore

			break
		}
	}

	verdict.Next = earliest(verdict.Next, times.Next)

	return verdict
}

// judgePolicy is about the policy as a whole.
func (p *Policy) judgePolicy(Member, window.State, time.Time) Verdict {
	conditions := p.Object.Status.Conditions

	switch {
	case p.Object.Status.ObservedGeneration != p.Object.Generation:
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: "the policy has changed, and was not looked at yet"}
	case apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled):
		return Verdict{Reason: v1alpha1.ReasonPolicyNotReady, Message: "the policy is stalled: " + apimeta.FindStatusCondition(conditions, v1alpha1.ConditionStalled).Message}
	case p.Object.Spec.Hold:
		return Verdict{Reason: v1alpha1.ReasonPolicyOnHold, Message: "spec.hold of the policy is set"}
	default:
		return Verdict{}
	}
}

func (p *Policy) judgeFreeze(_ Member, times window.State, _ time.Time) Verdict {
	if times.Freeze == "" {
		return Verdict{}
	}

	return Verdict{
		Reason: v1alpha1.ReasonFrozen, NotBefore: times.Opens,
		Message: fmt.Sprintf("until %s by the freeze %q", shownTime(times.Opens), times.Freeze),
	}
}

// judgeCluster is about the cluster, and about those that failed. The fix for what failed may begin in a cluster that is
// not well.
func (p *Policy) judgeCluster(m Member, _ window.State, _ time.Time) Verdict {
	switch {
	case m.isFix():
		return Verdict{}
	case m.hasFailed():
		return Verdict{
			Reason:  v1alpha1.ReasonRolloutFailed,
			Message: "these changes failed here (" + m.Rollout.Failure.Message + "); fix them in the objects, or override",
		}
	case !m.Healthy:
		return Verdict{Reason: v1alpha1.ReasonClusterNotReady, Message: "the cluster has to run well before a change begins"}
	case p.Object.Status.FailedCount > p.Object.Spec.MaxFailed:
		return Verdict{Reason: v1alpha1.ReasonRolloutStopped, Message: p.stopped()}
	default:
		return Verdict{}
	}
}

func (p *Policy) judgeWindow(_ Member, times window.State, _ time.Time) Verdict {
	if times.Open {
		return Verdict{}
	}

	return Verdict{Reason: v1alpha1.ReasonOutsideWindow, Message: "until " + shownTime(times.Opens), NotBefore: times.Opens}
}

// stopped says which clusters stop the rollout.
func (p *Policy) stopped() string {
	text := fmt.Sprintf("%d failed, %d may", p.Object.Status.FailedCount, p.Object.Spec.MaxFailed)

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

// judgeStages is about the stages before the cluster's, unless its own was promoted.
func (p *Policy) judgeStages(m Member, _ window.State, now time.Time) Verdict {
	name := p.Object.Spec.Stages[m.Stage].Name

	if promoted, until := p.promotion(name, now); promoted {
		return Verdict{Next: until}
	}

	if p.Object.Spec.Stages[m.Stage].Promotion == v1alpha1.PromotionManual {
		return Verdict{
			Reason: v1alpha1.ReasonAwaitingPromotion,
			Message: fmt.Sprintf("until somebody promotes the stage: kubectl annotate omnirolloutpolicy %s -n %s %s%s=<until when, such as 2026-11-28T06:00:00Z>",
				p.Object.Name, p.Object.Namespace, v1alpha1.AnnotationPromotePrefix, name),
		}
	}

	for earlier := range m.Stage {
		if waits := p.awaited(m, earlier, now); waits.Reason != "" {
			return waits
		}
	}

	return Verdict{}
}

// promotion reports whether somebody lets the stage begin without the others, and until when.
func (p *Policy) promotion(name string, now time.Time) (promoted bool, until time.Time) {
	until, err := time.Parse(time.RFC3339, p.Object.Annotations[v1alpha1.AnnotationPromotePrefix+name])
	if err != nil || !now.Before(until) || until.Sub(now) > MaxPromotion {
		return false, time.Time{}
	}

	return true, until
}

// awaited is what an earlier stage has not proved yet.
func (p *Policy) awaited(m Member, earlier int, now time.Time) Verdict {
	other := false

	for _, kind := range m.Rollout.Kinds {
		version := m.WantedKubernetes

		switch kind {
		case v1alpha1.ChangeKubernetesVersion:
		case v1alpha1.ChangeTalosVersion:
			version = m.WantedTalos
		default:
			other = true

			continue
		}

		if !p.qualified(earlier, kind, version) {
			return p.awaitedVersion(earlier, kind, version)
		}
	}

	if other {
		return p.awaitedQuiet(m, earlier, now)
	}

	return Verdict{}
}

func (p *Policy) qualified(number int, kind v1alpha1.ChangeKind, version string) bool {
	for _, one := range p.status(number).Qualified {
		if versionOf(kind, one.Kubernetes, one.Talos) == version {
			return true
		}
	}

	return false
}

func versionOf(kind v1alpha1.ChangeKind, kubernetes, talos string) string {
	if kind == v1alpha1.ChangeTalosVersion {
		return talos
	}

	return kubernetes
}

func (p *Policy) awaitedVersion(number int, kind v1alpha1.ChangeKind, version string) Verdict {
	verdict := Verdict{Reason: v1alpha1.ReasonWaitingForStage}
	name, status := p.Object.Spec.Stages[number].Name, p.status(number)
	verdict.Message = fmt.Sprintf("%s %s: ", kind, version)

	if status.Clusters == 0 {
		verdict.Message += fmt.Sprintf("stage %q has no clusters, and so it proves nothing", name)

		return verdict
	}

	for _, one := range status.Soaking {
		if versionOf(kind, one.Kubernetes, one.Talos) != version {
			continue
		}

		verdict.Message += fmt.Sprintf("stage %q runs it in %d of %d clusters, %d have to", name, one.Clusters, status.Clusters, one.Needed)

		if one.Until != nil {
			verdict.Message += ", and proves it until " + shownTime(one.Until.UTC())
		}

		return verdict
	}

	verdict.Message += fmt.Sprintf("stage %q does not run it yet", name)

	return verdict
}

// awaitedQuiet is for changes whose content differs from cluster to cluster: nobody can tell whether those of an earlier
// stage are the same. It goes by quiet.
func (p *Policy) awaitedQuiet(m Member, earlier int, now time.Time) Verdict {
	spec, status := p.Object.Spec.Stages[earlier], p.status(earlier)
	verdict := Verdict{Reason: v1alpha1.ReasonWaitingForStage}

	if status.QuietSince == nil {
		verdict.Message = fmt.Sprintf("stage %q has changes that wait or are at work, or no cluster that runs well", spec.Name)

		return verdict
	}

	soaked := status.QuietSince.Add(spec.SoakTime.OrDefault(defaultOf(v1alpha1.DefaultSoakTime)))
	if now.Before(soaked) {
		verdict.Message, verdict.Next = fmt.Sprintf("stage %q soaks until %s", spec.Name, shownTime(soaked.UTC())), soaked

		return verdict
	}

	arrival := p.Object.Spec.ArrivalTime.OrDefault(defaultOf(v1alpha1.DefaultArrivalTime))
	if since := m.Rollout.HeldSince; since == nil || now.Before(since.Add(arrival)) {
		verdict.Message = fmt.Sprintf("changes are seen for %s before a later stage takes them", arrival)
		verdict.Next = now.Add(arrival)

		if since != nil {
			verdict.Next = since.Add(arrival)
		}

		return verdict
	}

	return Verdict{}
}

// shownTime is a time as people read it, in its own zone.
func shownTime(t time.Time) string {
	if t.IsZero() {
		return "further notice"
	}

	return t.Format("Mon 2006-01-02 15:04 MST")
}

// earliest is the first of several instants; the zero time is none.
func earliest(times ...time.Time) time.Time {
	var first time.Time

	for _, one := range times {
		if !one.IsZero() && (first.IsZero() || one.Before(first)) {
			first = one
		}
	}

	return first
}
