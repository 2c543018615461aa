package omnisecretsync

import (
	"context"
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// report writes the result of a run into the status.
func (r *reconciler) report(_ context.Context, s *scope) {
	status := &s.sync.Status

	// This comes first: it concerns what was written before this run.
	r.reportCluster(s)

	where := wantedLocation(s.sync)

	switch {
	case s.oldestRemoved:
		status.PendingTargets = status.PendingTargets[1:]
	case s.aboutToWrite && status.Target == nil:
		status.Target = &v1alpha1.SyncedSecret{Namespace: where.namespace, Name: where.name}
	case s.aboutToWrite:
		status.PendingTargets = append(status.PendingTargets, v1alpha1.SyncedSecret{Namespace: where.namespace, Name: where.name})
	}

	if s.wrote {
		status.LastSyncTime = new(words.StoredTime(r.options.Now()))
	}

	if s.synced {
		status.PendingTargets = s.formerTargets(where)
		status.Target = &v1alpha1.SyncedSecret{
			Namespace: where.namespace, Name: where.name, Type: string(s.want.secretType), Hash: s.want.hash(),
			Generation: s.sync.Generation,
		}
	}
}

// formerTargets returns what the status records of the Secrets that were not removed, without that of the target.
func (s *scope) formerTargets(target location) []v1alpha1.SyncedSecret {
	var former []v1alpha1.SyncedSecret

	for _, known := range knownSecrets(s.sync) {
		if where := locationOf(known); where != target && !slices.Contains(s.removed, where) {
			former = append(former, known)
		}
	}

	return former
}

// reportCluster records the cluster in which the object has written. What it wrote in another one before stays there,
// and nothing else would record that.
func (r *reconciler) reportCluster(s *scope) {
	if s.opened == nil || !s.aboutToWrite && !s.oldestRemoved && !s.synced && s.sync.DeletionTimestamp.IsZero() {
		return
	}

	if moved := clusteraccess.Moved(s.sync.Status.ClusterID, s.opened.ClusterID); moved != "" {
		for _, where := range knownLocations(s.sync) {
			r.announceLeftIn(s, where, moved)
		}

		forgetWrites(&s.sync.Status)
	}

	s.sync.Status.ClusterID = s.opened.ClusterID
}

// forgetWrites forgets that writes were confirmed: they were in another cluster.
func forgetWrites(status *v1alpha1.OmniSecretSyncStatus) {
	for i := range status.PendingTargets {
		status.PendingTargets[i].Hash = ""
	}

	if status.Target != nil {
		status.Target.Hash = ""
	}
}
