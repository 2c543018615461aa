package child

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
)

// Options are what the controllers need besides the manager.
type Options struct {
	// Objects receives the metrics.
	Objects *metrics.Objects
	// Concurrency is the number of objects that are reconciled at the same time.
	Concurrency Concurrency
}

// Concurrency is the number of workers of each kind.
type Concurrency struct {
	ControlPlane, Workers, Machine int
}

// Add adds the controllers of the three kinds to a manager. The indexes of
// package index must be registered.
func Add(mgr manager.Manager, options Options) error {
	if err := add(mgr, controlPlane(), options.Objects, options.Concurrency.ControlPlane); err != nil {
		return err
	}

	if err := add(mgr, workers(), options.Objects, options.Concurrency.Workers); err != nil {
		return err
	}

	return add(mgr, machine(), options.Objects, options.Concurrency.Machine)
}

func add[O loop.Object](mgr manager.Manager, document document[O], objects *metrics.Objects, concurrency int) error {
	r := &reconciler[O]{client: mgr.GetClient(), document: document, objects: objects, now: time.Now}
	ofFamily := handler.EnqueueRequestsFromMapFunc(r.family)
	changedSpec := builder.WithPredicates(predicate.GenerationChangedPredicate{})

	// A changed document of the same kind may concern its siblings, which For alone would not enqueue.
	err := builder.ControllerManagedBy(mgr).
		Named(document.controller).
		For(document.new(), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster)).
		Watches(&v1alpha1.OmniControlPlane{}, ofFamily, changedSpec).
		Watches(&v1alpha1.OmniWorkers{}, ofFamily, changedSpec).
		Watches(&v1alpha1.OmniMachine{}, ofFamily, changedSpec).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: loop.RateLimiter()}).
		Complete(loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: mgr.GetEventRecorder("omni-controller")}))
	if err != nil {
		return fmt.Errorf("add the controller of %s: %w", document.kind, err)
	}

	return nil
}

// ofCluster returns the documents of a cluster.
func (r *reconciler[O]) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.requests(ctx, cluster.GetNamespace(), cluster.GetName())
}

// family returns the documents that refer to the same cluster as the given one.
func (r *reconciler[O]) family(ctx context.Context, sibling client.Object) []reconcile.Request {
	return r.requests(ctx, sibling.GetNamespace(), v1alpha1.ClusterRefOf(sibling))
}

func (r *reconciler[O]) requests(ctx context.Context, namespace, cluster string) []reconcile.Request {
	return index.Requests(ctx, r.client, r.document.list(), client.InNamespace(namespace), client.MatchingFields{index.ByCluster: cluster})
}
