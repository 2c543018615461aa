package omnikubeconfigexport

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// Options are what the controller needs besides the manager. All are required except Sources, Namespaces, Skew
// and Now.
type Options struct {
	// Pool keeps the sessions with Omni, which the controller of OmniConnection opens.
	Pool *session.Pool
	// Objects and Kubeconfigs receive the metrics.
	Objects     *metrics.Objects
	Kubeconfigs *metrics.Kubeconfigs
	// Sources says which Secrets are not taken over.
	Sources sources.Policy
	// Namespaces are the namespaces, besides an export's own, to which its Secret may be written.
	Namespaces []string
	// Guard decides to which addresses an exported kubeconfig may lead.
	Guard dialguard.Guard
	// HubID is the ID of the hub in marks of ownership.
	HubID string
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
	// Concurrency is the number of exports that are reconciled at the same time.
	Concurrency int
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller to a manager. The indexes of package index must be
// registered.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("omni-controller"), options)

	return loop.For(builder.ControllerManagedBy(mgr).Named("omnikubeconfigexport"), &v1alpha1.OmniKubeconfigExport{}).
		Watches(&v1alpha1.OmniKubeconfigExport{}, handler.EnqueueRequestsFromMapFunc(r.otherClaimants), builder.WithPredicates(loop.OnlyDeletions())).
		WatchesMetadata(index.SecretMetadata(), handler.EnqueueRequestsFromMapFunc(r.exportsOfSecret)).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(r.exportsOfCluster), builder.WithPredicates(clusterChanged())).
		Watches(&v1alpha1.OmniConnection{}, handler.EnqueueRequestsFromMapFunc(index.OfConnection(r.client, r.exportsOfCluster)), builder.WithPredicates(connectionChanged())).
		WatchesRawSource(trigger.Names(r.wake)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: loop.RateLimiter()}).
		Complete(loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events}))
}

// clusterChanged accepts the changes that an export can depend on: a cluster's status changes far more often than its
// identity. A cluster that is no longer Stalled may own what it did not own before, under the same ID.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.OmniCluster)
		after, also := e.ObjectNew.(*v1alpha1.OmniCluster)

		return !ok || !also || before.UID != after.UID || before.Generation != after.Generation ||
			before.Status.OmniClusterID != after.Status.OmniClusterID || isReplaced(before) != isReplaced(after) ||
			apimeta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.ConditionStalled) !=
				apimeta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionStalled)
	}}
}

// connectionChanged accepts the changes that an export can depend on, also a new key, which may have other rights than
// the old one.
func connectionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.OmniConnection)
		after, also := e.ObjectNew.(*v1alpha1.OmniConnection)

		return !ok || !also || before.UID != after.UID || before.Generation != after.Generation || hubs.PreviousChanged().Update(e) ||
			!equality.Semantic.DeepEqual(before.Status.ServiceAccount, after.Status.ServiceAccount) ||
			apimeta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.ConditionReady) !=
				apimeta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionReady)
	}}
}

// exportsOfSecret returns the exports whose target is the Secret, and the export that wrote it when another Secret was
// its target.
func (r *reconciler) exportsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	requests := r.exports(ctx, metav1.NamespaceAll, index.ByTargetSecret, keyOf(secret).String())

	// An annotation may have any value, and the cache has no objects of namespaces that are not served.
	writer := writerOf(secret)
	if writer.Name == "" || r.client.Get(ctx, writer, &v1alpha1.OmniKubeconfigExport{}) != nil {
		return requests
	}

	return append(requests, reconcile.Request{NamespacedName: writer})
}

// otherClaimants returns the exports with the targets of an export: one of them may have waited for it to go. The Secret
// tells them as well if it goes with its export; with deletionPolicy Orphan it stays as it is.
func (r *reconciler) otherClaimants(ctx context.Context, object client.Object) []reconcile.Request {
	export, ok := object.(*v1alpha1.OmniKubeconfigExport)
	if !ok {
		return nil
	}

	return append(r.exports(ctx, metav1.NamespaceAll, index.ByTargetSecret, export.EffectiveTarget().String()),
		r.exports(ctx, metav1.NamespaceAll, index.ByTargetSecret, export.WrittenTarget().String())...)
}

func (r *reconciler) exportsOfCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.exports(ctx, cluster.GetNamespace(), index.ByCluster, cluster.GetName())
}

// exports returns the exports with a value in an index.
func (r *reconciler) exports(ctx context.Context, namespace, by, value string) []reconcile.Request {
	return index.Requests(ctx, r.client, &v1alpha1.OmniKubeconfigExportList{}, client.InNamespace(namespace), client.MatchingFields{by: value})
}
