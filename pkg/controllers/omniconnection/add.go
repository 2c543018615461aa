package omniconnection

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// Options are what the controller needs besides the manager. All are required except Endpoints, Skew and Now.
type Options struct {
	// Pool keeps the sessions with Omni. This controller opens them.
	Pool *session.Pool
	// Objects and Calls receive the metrics.
	Objects *metrics.Objects
	Calls   *metrics.Calls
	// HealthChanged fires with the UID of a connection whose session's health changed, or whose key Omni refused for
	// another call.
	HealthChanged *trigger.Trigger[string]
	// Endpoints decides where keys may be used.
	Endpoints EndpointPolicy
	// Namespace is the one that is served; empty: all.
	Namespace string
	// Concurrency is the number of connections that are reconciled at the same time.
	Concurrency int
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller, and the one of the keys' Secrets, to a manager. The indexes of package index must be registered.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("omni-controller"), options)
	reconciler := loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events})

	if err := r.addSecrets(mgr); err != nil {
		return err
	}

	return loop.For(builder.ControllerManagedBy(mgr).Named("omniconnection"), &v1alpha1.OmniConnection{}).
		WatchesMetadata(index.SecretMetadata(), handler.EnqueueRequestsFromMapFunc(r.connectionsOfSecret)).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(connectionOfCluster),
			builder.WithPredicates(onlyComingAndGoing())).
		WatchesRawSource(options.HealthChanged.Source(r.connectionsOfUID)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: reconciler.Failures()}).
		Complete(reconciler)
}

// onlyComingAndGoing accepts the changes that change who uses a connection.
func onlyComingAndGoing() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

func connectionOfCluster(_ context.Context, object client.Object) []reconcile.Request {
	cluster, ok := object.(*v1alpha1.OmniCluster)
	if !ok || cluster.Spec.ConnectionRef.Name == "" {
		return nil
	}

	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ConnectionRef.Name}}}
}

func (r *reconciler) connectionsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return r.requests(ctx, client.InNamespace(secret.GetNamespace()), client.MatchingFields{index.ByKeySecret: secret.GetName()})
}

func (r *reconciler) connectionsOfUID(ctx context.Context, uid string) []reconcile.Request {
	return r.requests(ctx, client.MatchingFields{index.ByUID: uid})
}

// requests returns the connections that the options select.
func (r *reconciler) requests(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return index.Requests(ctx, r.client, &v1alpha1.OmniConnectionList{}, options...)
}
