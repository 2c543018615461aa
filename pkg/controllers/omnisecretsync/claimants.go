package omnisecretsync

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueOtherClaimants enqueues, when an object is gone or has left a place in the workload cluster, those that want
// their Secret there: one of them may have waited for the owner, or lost its copy with it. The status forgets a place
// after the copy there is removed.
func (r *reconciler) enqueueOtherClaimants() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, wasSync := e.ObjectOld.(*v1alpha1.OmniSecretSync)
			after, isSync := e.ObjectNew.(*v1alpha1.OmniSecretSync)

			if wasSync && isSync {
				still := knownLocations(after)
				r.enqueueAt(ctx, before, slices.DeleteFunc(knownLocations(before), func(l location) bool { return slices.Contains(still, l) }), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if gone, isSync := e.Object.(*v1alpha1.OmniSecretSync); isSync {
				r.enqueueAt(ctx, gone, append(knownLocations(gone), wantedLocation(gone)), q)
			}
		},
	}
}

// enqueueAt enqueues the other objects of the cluster that want their Secret at one of the locations.
func (r *reconciler) enqueueAt(ctx context.Context, sync *v1alpha1.OmniSecretSync, left []location, q queue) {
	if len(left) == 0 {
		return
	}

	index.Each(ctx, r.client, &v1alpha1.OmniSecretSyncList{}, func(other *v1alpha1.OmniSecretSync) {
		if other.Name != sync.Name && slices.Contains(left, wantedLocation(other)) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}, client.InNamespace(sync.Namespace), client.MatchingFields{index.ByCluster: sync.Spec.ClusterRef.Name})
}
