package omnicluster

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// noteWell writes into the status since when the cluster runs well. before is what the status had of Omni. A run that did
// not look at Omni changes nothing: the cluster may have run well all the time. The status that said when it did not may be
// lost, or an older one be restored, so this process keeps it, too.
func (r *reconciler) noteWell(s *scope, before *v1alpha1.OmniClusterRemoteStatus) {
	status := &s.cluster.Status
	if status.Rollout == nil || s.seen == nil || s.remote == nil {
		return
	}

	state := r.processStates.of(s.cluster)
	runs, _, _ := observe.Running(*s.remote)
	runs = runs && status.Omni != nil && !status.Starting

	// Omni was told to run other versions.
	other := before == nil || before.KubernetesVersion != withV(s.remote.KubernetesVersion) || before.TalosVersion != withV(s.remote.TalosVersion)
	if !runs || other {
		state.unwell = r.options.Now()
	}

	if runs {
		status.Rollout.WellSince = new(words.StoredTime(later(r.knownWell(s.cluster), state.unwell)))
	} else {
		status.Rollout.WellSince = nil
	}

	r.options.Well.Note(s.cluster)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}

// knownWell returns since when a cluster that runs well does so by its status; now if the status does not say it. The
// condition Ready of a suspended cluster is from before it was suspended.
func (r *reconciler) knownWell(cluster *v1alpha1.OmniCluster) time.Time {
	if since := cluster.Status.Rollout.WellSince; since != nil {
		return since.Time
	}

	now := r.options.Now()
	if since := rollout.ReadySince(cluster); !since.IsZero() && !cluster.Spec.Suspend && !since.After(now) {
		return since
	}

	return now
}
