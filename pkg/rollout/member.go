package rollout

import (
	"cmp"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Member is what a policy needs to know of one of its clusters.
type Member struct {
	// Name, UID and Zone are those of the OmniCluster; Zone is its annotation time-zone.
	Name, UID, Zone string
	// Stage is the number of its stage.
	Stage int
	// Rollout is the OmniCluster's status.rollout.
	Rollout v1alpha1.OmniClusterRollout
	// Healthy says whether the cluster runs well, even if changes wait for people. Since is the time from which on it
	// does, with the versions that Omni was told to run; zero if that is not known.
	Healthy bool
	Since   time.Time
	// Behind is true while the cluster's status is not about its present objects: the status may be out of date.
	Behind bool
	// Unseen is true while this process has not found in Omni what the status says of how the cluster runs: the status may be
	// from before the process began.
	Unseen bool
	// Ready is the cluster's condition Ready.
	Ready bool
	// Paused is true for a cluster that makes no changes: suspended, observed only, being deleted, locked in Omni, or written
	// by somebody else as well.
	Paused bool
	// Deleting is true for a cluster that is being deleted. If it failed, nobody will fix it: it does not stop the rollout.
	Deleting bool
	// Conflict is true for a cluster that another policy selects, too; HasLeft for a cluster that this policy no longer
	// selects. Neither gets a ticket.
	Conflict, HasLeft bool
	// WantedKubernetes and WantedTalos are the versions in the cluster's spec; Kubernetes and Talos are the versions
	// that Omni was told to run.
	WantedKubernetes, WantedTalos, Kubernetes, Talos string
}

// MemberOf reads an OmniCluster that the policy selects. confirmed says whether this process has found in Omni what the
// cluster's status says of how it runs.
func (p *Policy) MemberOf(cluster *v1alpha1.OmniCluster, confirmed bool) Member {
	member := Member{
		Name: cluster.Name, UID: string(cluster.UID), Zone: cluster.Annotations[v1alpha1.AnnotationTimeZone], Stage: p.StageOf(cluster),
		Unseen: !confirmed, Paused: IsPaused(cluster), Deleting: !cluster.DeletionTimestamp.IsZero(),
		WantedKubernetes: cluster.Spec.Kubernetes.Version, WantedTalos: cluster.Spec.Talos.Version,
	}
	member.Healthy, member.Since = Healthy(cluster, confirmed)
	member.Behind = cluster.Status.ObservedGeneration != cluster.Generation
	member.Ready = apimeta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady)

	if cluster.Status.Rollout != nil {
		member.Rollout = *cluster.Status.Rollout
	}

	if remote := cluster.Status.Omni; remote != nil {
		member.Kubernetes, member.Talos = remote.KubernetesVersion, remote.TalosVersion
	}

	return member
}

// IsPaused reports whether a cluster makes no changes: it is suspended, only observed, being deleted, locked in Omni, or
// written by somebody else as well.
func IsPaused(cluster *v1alpha1.OmniCluster) bool {
	if cluster.Spec.Suspend || cluster.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve || !cluster.DeletionTimestamp.IsZero() {
		return true
	}

	ready := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)

	return ready != nil && ready.Status == metav1.ConditionFalse && (ready.Reason == v1alpha1.ReasonRemoteLocked || ready.Reason == v1alpha1.ReasonSecondWriter)
}

// mayRunWell reports whether what Omni has may run well although the cluster is not Ready for this reason.
func mayRunWell(reason string) bool {
	switch reason {
	case v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonWaitingToSettle, v1alpha1.ReasonWaitingForDocuments, v1alpha1.ReasonProgressing,
		v1alpha1.ReasonRefused, v1alpha1.ReasonNamespaceDeleting:
		return true
	default:
		return false
	}
}

// Healthy reports whether a cluster runs well, and since when; the zero time if that is not known. A cluster also counts as
// healthy if it is not Ready only because a destroying change waits for an approval or for the settle time, because machines are
// about to join, because changes are about to be made or are left in a namespace that is being deleted, or because Omni refuses some of them, provided that
// Omni says that it runs. What Omni refuses may need a version that waits for its turn.
//
// confirmed says whether this process has found in Omni what the status says of how the cluster runs. Then status.rollout.wellSince
// is missing only while the cluster does not run well, for example because its manifests are not applied; otherwise the status
// may be from before a policy selected the cluster.
func Healthy(cluster *v1alpha1.OmniCluster, confirmed bool) (healthy bool, since time.Time) {
	ready := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return false, time.Time{}
	}

	unwell := confirmed

	if status := cluster.Status.Rollout; status != nil && status.WellSince != nil {
		since, unwell = status.WellSince.Time, false
	} else {
		since = ReadySince(cluster)
	}

	waits := mayRunWell(ready.Reason) && runs(cluster.Status.Omni) && !unwell

	return ready.Status == metav1.ConditionTrue || waits, since
}

// ReadySince returns since when a cluster is Ready without a write to Omni; zero if it is not Ready. It is what is known of
// a cluster whose status does not say since when it runs well, because no policy selected the cluster.
func ReadySince(cluster *v1alpha1.OmniCluster) time.Time {
	ready := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return time.Time{}
	}

	if written := cluster.Status.LastSyncTime; written != nil && written.After(ready.LastTransitionTime.Time) {
		return written.Time
	}

	return ready.LastTransitionTime.Time
}

// runs reports whether Omni says that a cluster runs, has the versions that it was told to run, and has no upgrade in
// progress.
func runs(remote *v1alpha1.OmniClusterRemoteStatus) bool {
	if remote == nil || remote.Phase != "Running" || !remote.KubernetesAPIReady || !remote.ControlPlaneReady {
		return false
	}

	for _, set := range remote.MachineSets {
		if !set.Ready {
			return false
		}
	}

	return isDone(remote.Upgrades.Kubernetes, remote.KubernetesVersion) && isDone(remote.Upgrades.Talos, remote.TalosVersion)
}

// isDone reports whether an upgrade to a version is done. Omni begins with it some time after it was told to: until then the
// one before is done. If Omni does not name the version, the phase has to do.
func isDone(upgrade *v1alpha1.UpgradeStatus, version string) bool {
	return upgrade == nil || upgrade.Phase == "Done" && (upgrade.Version == "" || version == "" || upgrade.Version == version)
}

// isIn reports whether the cluster belongs to the stage, and to no other policy.
func (m *Member) isIn(stage int) bool { return m.Stage == stage && !m.HasLeft && !m.Conflict }

// isHeld, isAdmitted and hasFailed read the cluster's own status.
func (m *Member) isHeld() bool     { return m.Rollout.State == v1alpha1.RolloutHeld && !m.Paused }
func (m *Member) isAdmitted() bool { return m.Rollout.State == v1alpha1.RolloutAdmitted }
func (m *Member) hasFailed() bool  { return m.Rollout.Failure != nil }

// countsAsFailed reports whether the cluster failed, and somebody has to fix it: it may stop the rollout.
func (m *Member) countsAsFailed() bool { return m.hasFailed() && !m.HasLeft && !m.Deleting }

// isOver reports whether the cluster failed and has not begun with the fix.
func (m *Member) isOver() bool { return m.hasFailed() && !m.isAdmitted() }

// isFix reports whether the changes of a failed cluster are others than those that failed.
func (m *Member) isFix() bool {
	failure := m.Rollout.Failure

	return failure != nil && m.Rollout.Hash != failure.Hash && m.Rollout.Hash != failure.Left
}

// counts reports whether the cluster counts for its stage. A cluster that is paused, or not healthy for reasons other
// than the rollout, does not: it must not keep the others from going on.
func (m *Member) counts() bool {
	return !m.Paused && (m.Healthy || m.isAdmitted() || m.hasFailed())
}

// broke reports whether the cluster runs a version, and not well. Such a cluster is one of those that a percentage is
// taken of: the version may be the cause.
func (m *Member) broke(kind v1alpha1.ChangeKind, version string) bool {
	return !m.Paused && !m.counts() && versionOf(kind, m.Kubernetes, m.Talos) == version
}

// asks reports whether changes of one of the kinds are held or in progress.
func (m *Member) asks(kinds func(v1alpha1.ChangeKind) bool) bool {
	if m.Rollout.State != v1alpha1.RolloutHeld && m.Rollout.State != v1alpha1.RolloutAdmitted {
		return false
	}

	for _, kind := range m.Rollout.Kinds {
		if kinds(kind) {
			return true
		}
	}

	return false
}

func isVersion(kind v1alpha1.ChangeKind) bool {
	return kind == v1alpha1.ChangeKubernetesVersion || kind == v1alpha1.ChangeTalosVersion
}

// maxQualified is how many proved versions of Kubernetes, and of Talos, a stage remembers; maxSoaking is how many
// versions that are not proved yet the status shows.
const (
	maxQualified = 10
	maxSoaking   = 10
)

func qualifiedVersion(kind v1alpha1.ChangeKind, version string, since time.Time) v1alpha1.QualifiedVersion {
	qualified := v1alpha1.QualifiedVersion{Since: *seconds(since)}
	if kind == v1alpha1.ChangeTalosVersion {
		qualified.Talos = version
	} else {
		qualified.Kubernetes = version
	}

	return qualified
}

func soakingVersion(kind v1alpha1.ChangeKind, version string, running, needed int) v1alpha1.SoakingVersion {
	one := v1alpha1.SoakingVersion{Clusters: int32(running), Needed: int32(needed)} //nolint:gosec // a fleet
	if kind == v1alpha1.ChangeTalosVersion {
		one.Talos = version
	} else {
		one.Kubernetes = version
	}

	return one
}

// keyOf distinguishes versions of Kubernetes from versions of Talos.
func keyOf(one v1alpha1.QualifiedVersion) string { return one.Kubernetes + "|" + one.Talos }

// latest keeps the most recently proved versions of each kind. For a version that clusters run now, the time of the
// present proof counts, not the remembered one: if it were dropped for its age, the next evaluation would find it
// again, and drop it again.
func latest(qualified []v1alpha1.QualifiedVersion, proved map[string]time.Time) []v1alpha1.QualifiedVersion {
	since := func(one v1alpha1.QualifiedVersion) time.Time {
		if now := proved[keyOf(one)]; now.After(one.Since.Time) {
			return now
		}

		return one.Since.Time
	}

	slices.SortStableFunc(qualified, func(a, b v1alpha1.QualifiedVersion) int {
		return cmp.Or(since(b).Compare(since(a)), cmp.Compare(keyOf(b), keyOf(a)))
	})

	kubernetes, talos := 0, 0
	kept := slices.DeleteFunc(qualified, func(one v1alpha1.QualifiedVersion) bool {
		counter := &kubernetes
		if one.Talos != "" {
			counter = &talos
		}

		*counter++

		return *counter > maxQualified
	})

	slices.SortFunc(kept, func(a, b v1alpha1.QualifiedVersion) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(keyOf(a), keyOf(b)))
	})

	return kept
}

// mostSoaked returns the versions that are of most interest to people: those that are about to be proved, then those
// that most clusters run. It keeps their order.
func mostSoaked(soaking []v1alpha1.SoakingVersion) []v1alpha1.SoakingVersion {
	if len(soaking) <= maxSoaking {
		return soaking
	}

	order := make([]int, len(soaking))
	for i := range order {
		order[i] = i
	}

	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(compareBool(soaking[a].Until == nil, soaking[b].Until == nil), cmp.Compare(soaking[b].Clusters, soaking[a].Clusters))
	})

	order = order[:maxSoaking]
	slices.Sort(order)

	kept := make([]v1alpha1.SoakingVersion, 0, maxSoaking)
	for _, i := range order {
		kept = append(kept, soaking[i])
	}

	return kept
}
