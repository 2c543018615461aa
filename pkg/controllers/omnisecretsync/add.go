package omnisecretsync

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// Options are what the controller needs besides the manager. All are required except Now.
type Options struct {
	// Access connects to the workload clusters.
	Access *clusteraccess.Access
	// Objects receives the metrics.
	Objects *metrics.Objects
	// HubID is the ID of the hub in marks of ownership.
	HubID string
	// Concurrency is the number of objects that are reconciled at the same time.
	Concurrency int
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller to a manager. The indexes of package index must be
// registered.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("omni-controller"), options)

	return builder.ControllerManagedBy(mgr).
		Named("omnisecretsync").
		For(&v1alpha1.OmniSecretSync{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.OmniSecretSync{}, r.enqueueOtherClaimants()).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(r.syncsOfCluster),
			builder.WithPredicates(clusteraccess.ParentChanged())).
		Watches(&v1alpha1.OmniConnection{}, handler.EnqueueRequestsFromMapFunc(index.OfConnection(r.client, r.syncsOfCluster)),
			builder.WithPredicates(hubs.PreviousChanged())).
		WatchesMetadata(index.SecretMetadata(), handler.EnqueueRequestsFromMapFunc(r.syncsOfSecret)).
		WatchesRawSource(trigger.Names(r.wake)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: loop.RateLimiter()}).
		Complete(loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events}))
}

func (r *reconciler) syncsOfCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.requests(ctx, cluster.GetNamespace(), index.ByCluster, cluster.GetName())
}

// syncsOfSecret returns the objects that read a Secret, as source or as kubeconfig.
func (r *reconciler) syncsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return append(r.requests(ctx, secret.GetNamespace(), index.BySourceSecret, secret.GetName()),
		r.requests(ctx, secret.GetNamespace(), index.ByKubeconfigSecret, secret.GetName())...)
}

// requests returns the objects with a value in an index.
func (r *reconciler) requests(ctx context.Context, namespace, by, value string) []reconcile.Request {
	return index.Requests(ctx, r.client, &v1alpha1.OmniSecretSyncList{}, client.InNamespace(namespace), client.MatchingFields{by: value})
}
