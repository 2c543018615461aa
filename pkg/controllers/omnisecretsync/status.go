package omnisecretsync

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// report writes what a run did into the status.
func (r *reconciler) report(_ context.Context, s *scope) {
	status := &s.sync.Status

	if s.reserve {
		where := wantedPlace(s.sync)
		status.Target = &v1alpha1.SyncedSecret{Namespace: where.namespace, Name: where.name}
	}

	if s.opened != nil && (s.reserve || s.synced) {
		status.ClusterID = s.opened.ClusterID
	}

	if s.wrote {
		// The API keeps whole seconds.
		status.LastSyncTime = &metav1.Time{Time: r.options.Now().UTC().Truncate(time.Second)}
	}

	if s.synced {
		where := wantedPlace(s.sync)
		status.Target = &v1alpha1.SyncedSecret{
			Namespace: where.namespace, Name: where.name, Type: string(s.want.secretType), Hash: s.want.hash(),
		}
	}
}
