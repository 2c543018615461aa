package rollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout/stage"
)

// maxQualified is how many versions of Kubernetes, and of Talos, a stage remembers to have proved; maxSoaking how many
// versions are shown that it has not.
const (
	maxQualified = 10
	maxSoaking   = 10
)

// stageStatuses says how far each stage is.
func (p *Policy) stageStatuses(members []Member, now time.Time) []v1alpha1.RolloutStageStatus {
	statuses := make([]v1alpha1.RolloutStageStatus, 0, len(p.stages))

	for i, spec := range p.Object.Spec.Stages {
		inStage := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Stage != i || m.Left || m.Conflict })
		before := p.status(i)

		one := v1alpha1.RolloutStageStatus{
			Name: spec.Name, Clusters: number(inStage, func(Member) bool { return true }), Held: number(inStage, Member.isHeld),
			Failed: number(inStage, Member.hasFailed), NotReady: number(inStage, Member.isOut), Qualified: before.Qualified,
			QuietSince: quietSince(inStage, before.QuietSince, now),
		}

		if calendar, err := p.calendar(i, ""); err == nil {
			times := calendar.At(now)
			one.Open, one.NextChange = times.Open, seconds(times.Next)
		}

		if promoted, until := p.promotion(spec.Name, now); promoted {
			one.PromotedUntil = seconds(until)
		}

		p.qualify(&one, spec, inStage, now)
		statuses = append(statuses, one)
	}

	return statuses
}

func number(members []Member, has func(Member) bool) int32 {
	return int32(count(members, has)) //nolint:gosec // a fleet
}

// isOut reports whether a cluster is not Ready for reasons of its own.
func (m Member) isOut() bool { return !m.Ready && !m.isHeld() && !m.isAdmitted() && !m.hasFailed() }

// quietSince is since when no cluster of a stage has a change other than a version that waits or is at work. A stage
// without a cluster that counts is not quiet: it proves nothing.
func quietSince(members []Member, before *metav1.Time, now time.Time) *metav1.Time {
	counted := 0

	for _, member := range members {
		if !member.counts() || member.hasFailed() {
			continue
		}

		counted++

		if member.asks(func(kind v1alpha1.ChangeKind) bool { return !isVersion(kind) }) {
			return nil
		}
	}

	switch {
	case counted == 0:
		return nil
	case before != nil:
		return before
	default:
		return seconds(now)
	}
}

// qualify adds to what a stage has proved the versions that have now run long enough, and shows the others.
//
// A version is proved when enough clusters run it well, the last of them for the soak time, and no cluster that asks for
// it still has to get it. It goes by the version itself, and not by clusters that look well: those may not have been
// told of it yet.
func (p *Policy) qualify(status *v1alpha1.RolloutStageStatus, spec v1alpha1.RolloutStage, members []Member, now time.Time) {
	counted := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !m.counts() })

	needed, err := stage.Needed(orOne(spec.MinQualified), len(counted))
	if err != nil {
		needed = len(counted) + 1 // New has refused it: nothing is proved
	}

	soak := spec.SoakTime.OrDefault(defaultOf(v1alpha1.DefaultSoakTime))

	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.ChangeKubernetesVersion, v1alpha1.ChangeTalosVersion} {
		for _, version := range versionsRun(counted, kind) {
			if slices.ContainsFunc(status.Qualified, func(one v1alpha1.QualifiedVersion) bool { return versionOf(kind, one.Kubernetes, one.Talos) == version }) {
				continue
			}

			running, last, pending := runVersion(counted, kind, version)
			proved := last.Add(soak)

			switch enough := running >= needed && !pending; {
			case enough && !now.Before(proved):
				status.Qualified = append(status.Qualified, qualifiedVersion(kind, version, proved))
			case len(status.Soaking) < maxSoaking:
				one := v1alpha1.SoakingVersion{Clusters: int32(running), Needed: int32(needed)} //nolint:gosec // a fleet
				if enough {
					one.Until = seconds(proved)
				}

				if kind == v1alpha1.ChangeTalosVersion {
					one.Talos = version
				} else {
					one.Kubernetes = version
				}

				status.Soaking = append(status.Soaking, one)
			}
		}
	}

	status.Qualified = latest(status.Qualified)
}

// versionsRun are the versions that clusters run, sorted.
func versionsRun(members []Member, kind v1alpha1.ChangeKind) []string {
	var found []string

	for _, member := range members {
		if version := versionOf(kind, member.Kubernetes, member.Talos); version != "" {
			found = append(found, version)
		}
	}

	slices.Sort(found)

	return slices.Compact(found)
}

// runVersion counts the clusters that run a version well, says since when the last of them does, and whether one that asks
// for it still has to get it.
func runVersion(members []Member, kind v1alpha1.ChangeKind, version string) (running int, last time.Time, pending bool) {
	for _, member := range members {
		wanted, has := versionOf(kind, member.WantedKubernetes, member.WantedTalos), versionOf(kind, member.Kubernetes, member.Talos)

		switch {
		case member.hasFailed():
		case wanted == version && (has != version || member.isAdmitted()):
			pending = true
		case has == version && member.Healthy && !member.isAdmitted():
			running++

			if member.Since.After(last) {
				last = member.Since
			}
		}
	}

	return running, last, pending
}

func qualifiedVersion(kind v1alpha1.ChangeKind, version string, since time.Time) v1alpha1.QualifiedVersion {
	qualified := v1alpha1.QualifiedVersion{Since: *seconds(since)}
	if kind == v1alpha1.ChangeTalosVersion {
		qualified.Talos = version
	} else {
		qualified.Kubernetes = version
	}

	return qualified
}

// latest keeps the last versions of each kind, in the order in which they were proved.
func latest(qualified []v1alpha1.QualifiedVersion) []v1alpha1.QualifiedVersion {
	slices.SortStableFunc(qualified, func(a, b v1alpha1.QualifiedVersion) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Kubernetes+a.Talos, b.Kubernetes+b.Talos))
	})

	var kept []v1alpha1.QualifiedVersion

	kubernetes, talos := 0, 0

	for _, one := range slices.Backward(qualified) {
		counter := &kubernetes
		if one.Talos != "" {
			counter = &talos
		}

		if *counter++; *counter <= maxQualified {
			kept = append(kept, one)
		}
	}

	slices.Reverse(kept)

	return kept
}

// seconds is an instant as the API keeps it; nil for the zero time.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}

	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}
