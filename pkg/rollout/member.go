package rollout

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Member is what a policy has to know of one of its clusters.
type Member struct {
	// Name, UID and Zone are those of the OmniCluster; Zone is its annotation time-zone.
	Name, UID, Zone string
	// Stage is the number of its stage.
	Stage int
	// Rollout is the OmniCluster's status.rollout.
	Rollout v1alpha1.OmniClusterRollout
	// Healthy reports whether it runs well, whatever waits for people; Since is since when.
	Healthy bool
	Since   time.Time
	// Behind is true while its status is not about its objects as they are: what it says of itself may be from before.
	Behind bool
	// Ready reports whether it is Ready as it is.
	Ready bool
	// Paused is true for a cluster that asks for nothing: suspended, only observed, or about to go.
	Paused bool
	// Conflict is true for a cluster that another policy selects, too, and Left for one that this policy does not select
	// any more. Neither gets a ticket.
	Conflict, Left bool
	// WantedKubernetes and WantedTalos are the versions that its spec asks for, Kubernetes and Talos those that Omni is to
	// run.
	WantedKubernetes, WantedTalos, Kubernetes, Talos string
}

// MemberOf reads an OmniCluster that the policy selects.
func (p *Policy) MemberOf(cluster *v1alpha1.OmniCluster) Member {
	member := Member{
		Name: cluster.Name, UID: string(cluster.UID), Zone: cluster.Annotations[v1alpha1.AnnotationTimeZone], Stage: p.StageOf(cluster),
		Paused:           cluster.Spec.Suspend || cluster.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve || !cluster.DeletionTimestamp.IsZero(),
		WantedKubernetes: cluster.Spec.Kubernetes.Version, WantedTalos: cluster.Spec.Talos.Version,
	}
	member.Healthy, member.Since = Healthy(cluster)
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

// Healthy reports whether a cluster runs well, and since when. One that is not Ready only because a destroying change
// waits for an approval or for the settle time, or because changes are about to be made, counts as well if Omni says so.
func Healthy(cluster *v1alpha1.OmniCluster) (healthy bool, since time.Time) {
	ready := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return false, time.Time{}
	}

	since = ready.LastTransitionTime.Time
	if written := cluster.Status.LastSyncTime; written != nil && written.After(since) {
		since = written.Time
	}

	if ready.Status == metav1.ConditionTrue {
		return true, since
	}

	waits := ready.Reason == v1alpha1.ReasonAwaitingApproval || ready.Reason == v1alpha1.ReasonWaitingToSettle ||
		ready.Reason == v1alpha1.ReasonProgressing

	return waits && runs(cluster.Status.Omni), since
}

// runs reports whether Omni says that a cluster runs and is not at work.
func runs(remote *v1alpha1.OmniClusterRemoteStatus) bool {
	if remote == nil || remote.Phase != "Running" || !remote.KubernetesAPIReady || !remote.ControlPlaneReady {
		return false
	}

	for _, set := range remote.MachineSets {
		if !set.Ready {
			return false
		}
	}

	for _, upgrade := range []*v1alpha1.UpgradeStatus{remote.Upgrades.Kubernetes, remote.Upgrades.Talos} {
		if upgrade != nil && upgrade.Phase != "Done" {
			return false
		}
	}

	return true
}

// isIn reports whether the cluster is one of a stage's, and of no other policy.
func (m *Member) isIn(stage int) bool { return m.Stage == stage && !m.Left && !m.Conflict }

// isHeld, isAdmitted and hasFailed are what the cluster itself says.
func (m *Member) isHeld() bool     { return m.Rollout.State == v1alpha1.RolloutHeld && !m.Paused }
func (m *Member) isAdmitted() bool { return m.Rollout.State == v1alpha1.RolloutAdmitted }
func (m *Member) hasFailed() bool  { return m.Rollout.Failure != nil }

// isOver reports whether the cluster failed and is not at work on the fix.
func (m *Member) isOver() bool { return m.hasFailed() && !m.isAdmitted() }

// isFix reports whether what a failed cluster asks for is something else than what failed.
func (m *Member) isFix() bool {
	failure := m.Rollout.Failure

	return failure != nil && m.Rollout.Hash != failure.Hash && m.Rollout.Hash != failure.Left
}

// counts reports whether a stage has to reckon with the cluster: one that is paused, or that is not well for reasons of
// its own, must not keep the others from going on.
func (m *Member) counts() bool {
	return !m.Paused && (m.Healthy || m.isAdmitted() || m.hasFailed())
}

// asks reports whether changes of one of the kinds wait or are at work.
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
