package rollout

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// stageStatuses returns the status of each stage, and when it may change without any event.
func (p *Policy) stageStatuses(members []*Member, now time.Time) (statuses []v1alpha1.RolloutStageStatus, next time.Time) {
	for i, spec := range p.Object.Spec.Stages {
		inStage := slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return !m.isIn(i) })
		before := p.status(i)

		one := v1alpha1.RolloutStageStatus{
			Name: spec.Name, Clusters: number(inStage, func(m *Member) bool { return !m.Paused }), Held: number(inStage, (*Member).isHeld),
			Failed: number(inStage, (*Member).countsAsFailed), NotReady: number(inStage, (*Member).isOut),
			Qualified: slices.DeleteFunc(slices.Clone(before.Qualified), func(one v1alpha1.QualifiedVersion) bool { return !isProved(one, now) }),
		}
		one.QuietSince, one.LastQuietSince = quietSince(inStage, before, now)

		if calendar, err := p.calendar(i, ""); err == nil {
			changes := nextChange(calendar, now)
			one.Open, one.NextChange = calendar.At(now).Open, seconds(changes)
			next = earliest(next, changes)
		}

		promoted, changes := p.promotion(spec.Name, now)
		if promoted {
			one.PromotedUntil = seconds(changes)
		}

		next = earliest(next, changes, p.qualify(&one, spec, inStage, now))
		statuses = append(statuses, one)
	}

	return statuses, next
}

// mostWeeks is how many weeks ahead the next change of a calendar is searched: a year and some weeks.
const mostWeeks = 60

// nextChange returns when an open calendar closes, or a closed one opens; zero if that never happens.
func nextChange(calendar Calendar, now time.Time) time.Time {
	state := calendar.At(now)
	next := state.Next

	// For a calendar that is open for more than a week, Next is only a week ahead.
	for range mostWeeks {
		if next.IsZero() {
			return next
		}

		then := calendar.At(next)
		if then.Open != state.Open {
			return next
		}

		next = then.Next
	}

	var frozen time.Time

	for _, freeze := range calendar.Freezes {
		if freeze.From.After(now) {
			frozen = earliest(frozen, freeze.From)
		}
	}

	return frozen
}

func number(members []*Member, has func(*Member) bool) int32 {
	return int32(count(members, has)) //nolint:gosec // a fleet
}

// isOut reports whether a cluster is not Ready for reasons other than the rollout.
func (m *Member) isOut() bool {
	return !m.Ready && !m.Paused && !m.isHeld() && !m.isAdmitted() && !m.hasFailed()
}

// quietSince returns since when a stage is quiet: no cluster has a change, other than of a version, that is held or
// in progress. A stage without a cluster that counts is not quiet: it proves nothing. If it has clusters that only do
// not run well at the moment, or have not been seen to, it returns as last since when the stage was quiet before: otherwise
// a stage with one cluster that stops running well now and then would begin its soak time again each time, and never end it.
func quietSince(members []*Member, before v1alpha1.RolloutStageStatus, now time.Time) (since, last *metav1.Time) {
	counted, unwell := 0, 0

	for _, member := range members {
		switch {
		case member.Paused:
		case !member.counts() || member.isOver():
			unwell++
		case member.asks(func(kind v1alpha1.ChangeKind) bool { return !isVersion(kind) }):
			return nil, nil
		case member.Unseen:
			unwell++
		default:
			counted++
		}
	}

	known := before.QuietSince
	if known == nil {
		known = before.LastQuietSince
	}

	known = NotAfter(known, now)

	switch {
	case counted == 0 && unwell == 0:
		return nil, nil
	case counted == 0:
		return nil, known
	case known == nil:
		return seconds(now), nil
	default:
		return known, nil
	}
}

// qualify adds the versions that have now run long enough to those that a stage has proved, and shows the others as
// soaking. It returns when the next one will be proved.
//
// A version is proved when enough clusters have each run it well for the soak time, and no cluster that asks for it
// still has to get it. It goes by the version that clusters run, and not only by healthy clusters: a healthy cluster
// may not have got the version yet. A version whose soak time has ended goes on soaking until this process has seen that
// enough clusters still run it well.
func (p *Policy) qualify(status *v1alpha1.RolloutStageStatus, spec v1alpha1.RolloutStage, members []*Member, now time.Time) (next time.Time) {
	counted := slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return !m.counts() })

	soak := spec.SoakTime.OrDefault(defaultOf(v1alpha1.DefaultSoakTime))
	qualified, soaking := slices.Clone(status.Qualified), []v1alpha1.SoakingVersion(nil)
	proved := map[string]time.Time{} // since when those are that the clusters run now

	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.ChangeKubernetesVersion, v1alpha1.ChangeTalosVersion} {
		for _, version := range versionsRun(counted, kind) {
			running, seen, pending := runVersion(counted, kind, version)
			needed := neededOf(spec, len(counted)+count(members, func(m *Member) bool { return m.broke(kind, version) }))
			known := slices.ContainsFunc(qualified, func(one v1alpha1.QualifiedVersion) bool { return versionOf(kind, one.Kubernetes, one.Talos) == version })

			var until, since time.Time // zero: too few run it, or others still have to get it
			if !pending {
				until, since = soaked(running, needed, soak), soaked(seen, needed, soak)
			}

			if !since.IsZero() && !now.Before(since) {
				one := qualifiedVersion(kind, version, since)
				proved[keyOf(one)] = one.Since.Time

				if !known {
					qualified = append(qualified, one)
				}

				continue
			}

			if known {
				continue
			}

			one := soakingVersion(kind, version, len(running), needed)
			one.Until, next = seconds(until), earliest(next, upcoming(until, now), upcoming(since, now))
			soaking = append(soaking, one)
		}
	}

	status.Qualified, status.Soaking = latest(qualified, proved), mostSoaked(soaking)

	return next
}

// neededOf returns how many clusters have to run a version well, of a number of clusters.
func neededOf(spec v1alpha1.RolloutStage, clusters int) int {
	needed, err := NeededOf(orOne(spec.MinQualified), clusters)
	if err != nil {
		return clusters + 1 // New has refused it: nothing is proved
	}

	return needed
}

// versionsRun returns the versions that clusters run, sorted.
func versionsRun(members []*Member, kind v1alpha1.ChangeKind) []string {
	var found []string

	for _, member := range members {
		if version := versionOf(kind, member.Kubernetes, member.Talos); version != "" {
			found = append(found, version)
		}
	}

	slices.Sort(found)

	return slices.Compact(found)
}

// soaked returns when the clusters that are needed will each have run a version for the soak time; zero if too few run it.
// Those that are not needed do not count: one that stops running well now and then must not keep the others' proof from counting.
func soaked(running []time.Time, needed int, soak time.Duration) time.Time {
	if len(running) < needed {
		return time.Time{}
	}

	return running[needed-1].Add(soak)
}

// upcoming returns a time if it is yet to come; otherwise zero.
func upcoming(t, now time.Time) time.Time {
	if now.Before(t) {
		return t
	}

	return time.Time{}
}

// runVersion returns since when each cluster that runs a version well does so by its status, the longest first, and the same
// for those that this process has seen. pending says whether a cluster that asks for the version still has to get it.
func runVersion(members []*Member, kind v1alpha1.ChangeKind, version string) (running, seen []time.Time, pending bool) {
	for _, member := range members {
		wanted, has := versionOf(kind, member.WantedKubernetes, member.WantedTalos), versionOf(kind, member.Kubernetes, member.Talos)

		switch {
		case member.isOver():
		case wanted == version && (has != version || member.isAdmitted()):
			pending = true
		case has == version && member.Healthy && !member.Since.IsZero() && !member.isAdmitted() && !member.Behind:
			running = append(running, member.Since)
			if !member.Unseen {
				seen = append(seen, member.Since)
			}
		}
	}

	slices.SortFunc(running, time.Time.Compare)
	slices.SortFunc(seen, time.Time.Compare)

	return running, seen, pending
}

// seconds returns a time as the API stores it; nil for the zero time.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}

	return new(words.StoredTime(t))
}
