package omnisecretsync

import (
	"context"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/utc"
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
		status.PendingTargets = append(status.PendingTargets, v1alpha1.NamespacedSecretReference{Namespace: where.namespace, Name: where.name})
	}

	if s.wrote {
		status.LastSyncTime = new(utc.Stored(r.options.Now()))
	}

	if s.synced {
		status.PendingTargets = nil
		status.Target = &v1alpha1.SyncedSecret{
			Namespace: where.namespace, Name: where.name, Type: string(s.want.secretType), Hash: s.want.hash(),
		}
	}
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
	}

	s.sync.Status.ClusterID = s.opened.ClusterID
}
