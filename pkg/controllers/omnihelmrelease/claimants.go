package omnihelmrelease

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// enqueueOtherClaimants enqueues, when an object is gone, those that claim the same release in the same cluster: one of
// them may have waited for the owner to go. Where a release is cannot be changed, so nothing else frees it.
func (r *reconciler) enqueueOtherClaimants() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			gone, ok := e.Object.(*v1alpha1.OmniHelmRelease)
			if !ok {
				return
			}

			list := &v1alpha1.OmniHelmReleaseList{}
			if r.client.List(ctx, list, client.InNamespace(gone.Namespace), client.MatchingFields{index.ByCluster: gone.Spec.ClusterRef.Name}) != nil {
				return // found again at the interval
			}

			for i := range list.Items {
				if other := &list.Items[i]; other.Name != gone.Name && fullName(other) == fullName(gone) {
					q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
				}
			}
		},
	}
}
