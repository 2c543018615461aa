package omnirolloutpolicy

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
)

// gather is how long a policy waits for further changes of its clusters before it is reconciled: a fleet changes all
// the time during a rollout, and each run reads all of it.
const gather = time.Second

// Options are what the controller needs besides the manager. All are required except Skew and Now.
type Options struct {
	// Objects and Rollouts receive the metrics.
	Objects  *metrics.Objects
	Rollouts *metrics.Rollouts
	// Well says which clusters this process has found to run as their statuses say.
	Well *hubs.Well
	// Concurrency is the number of policies that are reconciled at the same time.
	Concurrency int
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetEventRecorder("omni-controller"), options)

	return builder.ControllerManagedBy(mgr).
		Named("omnirolloutpolicy").
		For(&v1alpha1.OmniRolloutPolicy{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.OmniCluster{}, r.ofNamespace()).
		Watches(&v1alpha1.OmniRolloutPolicy{}, r.ofNamespace(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(options.Well.Source(r.policiesOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: loop.RateLimiter()}).
		Complete(loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events}))
}

// policiesOf returns the policies of a namespace.
func (r *reconciler) policiesOf(ctx context.Context, namespace string) []reconcile.Request {
	return index.Requests(ctx, r.client, &v1alpha1.OmniRolloutPolicyList{}, client.InNamespace(namespace))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ofNamespace enqueues the policies of a changed object's namespace, after a moment: its clusters are theirs, and what
// one policy selects is in conflict with another.
func (r *reconciler) ofNamespace() handler.EventHandler {
	later := func(ctx context.Context, q queue, object client.Object) {
		if object == nil {
			return
		}

		for _, policy := range r.policiesOf(ctx, object.GetNamespace()) {
			q.AddAfter(policy, gather)
		}
	}

	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { later(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { later(ctx, q, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { later(ctx, q, e.Object) },
	}
}
