package omnicluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// unwell is the last time when this process saw that a cluster did not run well, or was told to run another version. The
// status that said so may be lost, or an older one be restored.
type unwell struct {
	uid types.UID
	at  time.Time
}

// noteWell writes into the status since when the cluster runs well. before is what the status had of Omni. A run that did
// not look at Omni changes nothing: the cluster may have run well all the time.
func (r *reconciler) noteWell(s *scope, before *v1alpha1.OmniClusterRemoteStatus) {
	status := &s.cluster.Status
	if status.Rollout == nil || s.seen == nil || s.remote == nil {
		return
	}

	name := client.ObjectKeyFromObject(s.cluster)
	runs, _, _ := observe.Running(*s.remote)
	runs = runs && status.Omni != nil && !status.Starting

	if !runs || hasOtherVersions(before, *s.remote) {
		r.unwell.keep(name, unwell{uid: s.cluster.UID, at: r.options.Now()})
	}

	if !runs {
		status.Rollout.WellSince = nil

		return
	}

	since := r.knownWell(s.cluster)
	if last := r.unwell.of(name); last.uid == s.cluster.UID && last.at.After(since) {
		since = last.at
	}

	status.Rollout.WellSince = &metav1.Time{Time: since.UTC().Truncate(time.Second)}
}

// knownWell returns since when a cluster that runs well does so by its status; now if the status does not say it. The
// condition Ready of a suspended cluster is from before it was suspended.
func (r *reconciler) knownWell(cluster *v1alpha1.OmniCluster) time.Time {
	if known := cluster.Status.Rollout.WellSince; known != nil {
		return known.Time
	}

	if since := rollout.ReadySince(cluster); !since.IsZero() && !cluster.Spec.Suspend {
		return since
	}

	return r.options.Now()
}

// hasOtherVersions reports whether Omni was told to run other versions than those that the status has.
func hasOtherVersions(before *v1alpha1.OmniClusterRemoteStatus, remote observe.Status) bool {
	return before == nil || before.KubernetesVersion != withV(remote.KubernetesVersion) || before.TalosVersion != withV(remote.TalosVersion)
}
