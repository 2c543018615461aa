package rollout

import (
	"cmp"
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// judgeStages checks the stages before the cluster's own, unless that one was promoted. The fix of a failed change does
// not wait for them: they may have stopped because this cluster failed.
func (p *Policy) judgeStages(m Member, times CalendarState, now time.Time) Verdict {
	name := p.Object.Spec.Stages[m.Stage].Name

	promoted, changes := p.promotion(name, now)
	if promoted {
		return Verdict{Next: changes}
	}

	if p.Object.Spec.Stages[m.Stage].Promotion == v1alpha1.PromotionManual {
		message := "until somebody promotes the stage"
		if !times.Open && !times.Opens.IsZero() {
			message += ", for longer than until it opens, " + shownTime(times.Opens)
		}

		return Verdict{Reason: v1alpha1.ReasonAwaitingPromotion, Next: changes, Message: message + ": " + p.promoteCommand(name)}
	}

	if m.isFix() {
		return Verdict{Next: changes}
	}

	for earlier := range m.Stage {
		if waits := p.awaited(m, earlier, now); waits.Reason != "" {
			waits.Next = earliest(waits.Next, changes)
			waits.Message += p.afterStages(m)

			return waits
		}
	}

	return Verdict{}
}

// promotion reports whether a user promoted the stage, so that it begins without the earlier ones, and when that
// changes: at the end of the promotion, or, if the end is too far ahead, when it is within MaxPromotion.
func (p *Policy) promotion(name string, now time.Time) (promoted bool, changes time.Time) {
	until, err := time.Parse(time.RFC3339, p.Object.Annotations[v1alpha1.AnnotationPromotePrefix+name])

	switch {
	case err != nil || !now.Before(until):
		return false, time.Time{}
	case until.Sub(now) > MaxPromotion:
		return false, until.Add(-MaxPromotion)
	default:
		return true, until
	}
}

// withPromotion adds to a verdict that waits until the stage opens that a promotion is missing then. Nobody knows in that
// case when the changes may begin.
func (p *Policy) withPromotion(verdict Verdict, m Member, times CalendarState, now time.Time) Verdict {
	stage := p.Object.Spec.Stages[m.Stage]
	opens := times.Opens

	if opens.IsZero() || p.judgeStages(m, CalendarState{Open: true}, opens).Reason == "" {
		return verdict
	}

	switch promoted, ends := p.promotion(stage.Name, now); {
	case promoted && stage.Promotion == v1alpha1.PromotionManual:
		verdict.Message += fmt.Sprintf("; but the promotion of the stage ends before, %s: ", shownTime(ends.In(opens.Location())))
	case promoted: // it may not need the promotion by then
		verdict.Message += fmt.Sprintf("; the promotion of the stage ends before, %s: the earlier stages have to have proved the change by then",
			shownTime(ends.In(opens.Location())))

		return verdict
	case stage.Promotion == v1alpha1.PromotionManual:
		verdict.Message += "; then somebody has to promote the stage: "
	default:
		return verdict // the earlier stages have until then
	}

	verdict.Message += p.promoteCommand(stage.Name)
	verdict.Next, verdict.NotBefore = earliest(verdict.Next, verdict.NotBefore), time.Time{}

	return verdict
}

// promoteCommand returns the command that lets a stage begin without the earlier ones.
func (p *Policy) promoteCommand(stage string) string {
	return fmt.Sprintf("kubectl omni promote %s %s -n %s --for <how long>", p.Object.Name, stage, p.Object.Namespace)
}

// awaited says what an earlier stage has not proved yet.
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

		if !p.qualified(earlier, kind, version, now) {
			return p.awaitedVersion(earlier, kind, version, now)
		}
	}

	if other {
		return p.awaitedQuiet(m, earlier, now)
	}

	return Verdict{}
}

func (p *Policy) qualified(number int, kind v1alpha1.ChangeKind, version string, now time.Time) bool {
	for _, one := range p.status(number).Qualified {
		if versionOf(kind, one.Kubernetes, one.Talos) == version && isProved(one, now) {
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

func (p *Policy) awaitedVersion(number int, kind v1alpha1.ChangeKind, version string, now time.Time) Verdict {
	verdict := Verdict{Reason: v1alpha1.ReasonWaitingForStage}
	name, status := p.Object.Spec.Stages[number].Name, p.status(number)
	verdict.Message = fmt.Sprintf("%s %s: ", kind, version)

	if status.Clusters == 0 {
		verdict.Message += fmt.Sprintf("stage %q has no clusters that count, and so it proves nothing", name)

		return verdict
	}

	for _, one := range status.Soaking {
		if versionOf(kind, one.Kubernetes, one.Talos) != version {
			continue
		}

		verdict.Message += fmt.Sprintf("stage %q runs it in %d of %d clusters, ", name, one.Clusters, status.Clusters)

		switch {
		case one.Until != nil && !now.Before(one.Until.Time):
			verdict.Message += "which omni-controller has yet to look at in Omni since it started"
		case one.Until != nil:
			verdict.Message += "soaks until " + shownTime(one.Until.UTC())
		case one.Clusters < one.Needed:
			verdict.Message += fmt.Sprintf("needs %d", one.Needed)
		default:
			verdict.Message += "and others still have to get it"
		}

		return verdict
	}

	verdict.Message += fmt.Sprintf("stage %q does not run it yet", name)

	return verdict
}

// notSeen says, of a stage that was quiet before, what else it may lack.
func notSeen(status v1alpha1.RolloutStageStatus) string {
	if status.LastQuietSince == nil {
		return ""
	}

	return " and was looked at in Omni since omni-controller started"
}

// awaitedQuiet checks changes whose content differs from cluster to cluster. Nothing tells whether the changes of an
// earlier stage are the same, so it checks that the earlier stage has been quiet: without such changes for a time.
func (p *Policy) awaitedQuiet(m Member, earlier int, now time.Time) Verdict {
	spec, status := p.Object.Spec.Stages[earlier], p.status(earlier)
	verdict := Verdict{Reason: v1alpha1.ReasonWaitingForStage}

	if status.QuietSince == nil {
		verdict.Message = fmt.Sprintf("stage %q has changes that wait or are at work, or no cluster that runs well"+notSeen(status), spec.Name)

		return verdict
	}

	soaked := status.QuietSince.Add(spec.SoakTime.OrDefault(defaultOf(v1alpha1.DefaultSoakTime)))
	if now.Before(soaked) {
		verdict.Message, verdict.Next = fmt.Sprintf("stage %q soaks until %s", spec.Name, shownTime(soaked.UTC())), soaked

		return verdict
	}

	arrival := p.Object.Spec.ArrivalTime.OrDefault(defaultOf(v1alpha1.DefaultArrivalTime))
	shown := cmp.Or(p.Object.Spec.ArrivalTime, v1alpha1.DefaultArrivalTime)

	// What waits may have waited for long when the last of it came.
	since := m.Rollout.HeldSince
	if changed := m.Rollout.ChangedSince; since != nil && changed != nil && since.Before(changed) {
		since = changed
	}

	if since == nil || now.Before(since.Add(arrival)) {
		verdict.Message = fmt.Sprintf("changes are seen for %s before a later stage takes them", shown)
		verdict.Next = now.Add(arrival)

		if since != nil {
			verdict.Next = since.Add(arrival)
		}

		return verdict
	}

	return Verdict{}
}
