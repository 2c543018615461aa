package omnisecretsync

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
)

// findUnrecorded looks, for a deletion, where the spec wants the Secret, and records one that bears this object's mark. The
// status records a location before the first write, so there is one only if the status was lost: it was wiped, or the
// API's storage was restored from before. What cannot be read is told of and not waited for.
func (r *reconciler) findUnrecorded(ctx context.Context, s *scope) error {
	where, cluster := wantedLocation(s.sync), s.opened.Cluster

	bounded, cancel := context.WithTimeout(ctx, locationTimeout)
	defer cancel()

	live, err := read(bounded, cluster, where)

	switch {
	case clusteraccess.NotFound(err):
	case err != nil && ctx.Err() != nil: // a process that stops has learned nothing of the cluster
		return fmt.Errorf("read Secret %s: %w", where, ctx.Err())
	case err != nil:
		if clusteraccess.Unreachable(err) {
			cluster.Invalidate()
		}

		r.mayBeLeft(s, cluster.Message(err))
	case carriesMark(live, string(s.sync.UID)):
		found := content{secretType: live.Type, data: live.Data, salt: string(s.sync.UID)}
		s.sync.Status.Target = &v1alpha1.SyncedSecret{
			Namespace: where.namespace, Name: where.name, Type: string(live.Type), Hash: found.hash(),
		}
	}

	return nil
}

// mayBeLeft announces that nobody looked whether there is a Secret that the status does not record.
func (r *reconciler) mayBeLeft(s *scope, why string) {
	r.events.Eventf(s.sync, nil, corev1.EventTypeWarning, "LeftBehind", "Delete",
		"Secret %s may be left in the workload cluster of OmniCluster %q: the status records no write, and the cluster could not be looked at: %s",
		wantedLocation(s.sync), s.sync.Spec.ClusterRef.Name, why)
}
