// Package child is the one controller of the three template documents: OmniControlPlane, OmniWorkers and OmniMachine.
//
// It never calls Omni and sets no finalizer. The status of a document follows from the document, its siblings and the
// status of its OmniCluster. So only one controller knows Omni, and a document can be deleted at any time.
package child

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
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

// interval is how often a document is reconciled without a trigger. Everything that it depends on is watched.
const interval = 30 * time.Minute

// reconciler has what the phases of one kind need.
type reconciler[O loop.Object] struct {
	client   client.Client
	document document[O]
	objects  *metrics.Objects
	now      func() time.Time
}

// scope is what the phases of one run share.
type scope[O loop.Object] struct {
	object   O
	cluster  *v1alpha1.OmniCluster // nil if there is none
	accepted bool
	synced   loop.Outcome // zero if it was not asked
}

func (r *reconciler[O]) kind() loop.Kind[O, *scope[O]] {
	return loop.Kind[O, *scope[O]]{
		New:      r.document.new,
		Interval: func(O) time.Duration { return interval },
		NewScope: func(object O) *scope[O] { return &scope[O]{object: object} },
		Phases: []loop.Phase[*scope[O]]{
			{Condition: v1alpha1.ConditionAccepted, Run: r.accept},
			{Condition: v1alpha1.ConditionSynced, Run: r.checkSynced},
			{Condition: r.document.readyCondition, Run: r.checkReady},
		},
		Report:    func(_ context.Context, s *scope[O]) { r.document.report(s.object, s.cluster, s.accepted) },
		Transient: (*scope[O]).transient,
		Reported: func(object O) {
			r.objects.SetInfo(r.metricsName(client.ObjectKeyFromObject(object)), object.GetReconcileStatus().Conditions, v1alpha1.ClusterRefOf(object))
		},
		Gone: func(name types.NamespacedName) { r.objects.Forget(r.metricsName(name)) },
	}
}

func (r *reconciler[O]) metricsName(name types.NamespacedName) metrics.Object {
	return metrics.Object{Kind: r.document.kind, NamespacedName: name}
}

// accept gets the cluster and checks whether the document counts for it.
func (r *reconciler[O]) accept(ctx context.Context, s *scope[O]) (loop.Outcome, error) {
	name := v1alpha1.ClusterRefOf(s.object)
	cluster := &v1alpha1.OmniCluster{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.object.GetNamespace(), Name: name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return loop.Outcome{}, fmt.Errorf("read OmniCluster %q: %w", name, err)
	}

	if err != nil {
		return loop.Wait(0, v1alpha1.ReasonClusterNotFound, "OmniCluster %q does not exist", name), nil
	}

	s.cluster = cluster

	if !cluster.DeletionTimestamp.IsZero() {
		return loop.Wait(0, v1alpha1.ReasonDeleting, "OmniCluster %q is being deleted", name), nil
	}

	siblings, err := r.siblings(ctx, s.object.GetNamespace(), name)
	if err != nil {
		return loop.Outcome{}, err
	}

	outcome := r.document.accept(s.object, siblings)
	s.accepted = outcome.Continues()

	return outcome, nil
}

// siblings returns the documents of a cluster that are not being deleted. They are the cache's own, to be read only: each document
// of a cluster looks at all of them at each change of the cluster.
func (r *reconciler[O]) siblings(ctx context.Context, namespace, cluster string) (siblings, error) {
	options := []client.ListOption{client.InNamespace(namespace), client.MatchingFields{index.ByCluster: cluster}, client.UnsafeDisableDeepCopy}
	controlPlanes, workers, machines := &v1alpha1.OmniControlPlaneList{}, &v1alpha1.OmniWorkersList{}, &v1alpha1.OmniMachineList{}

	for _, list := range []client.ObjectList{controlPlanes, workers, machines} {
		if err := r.client.List(ctx, list, options...); err != nil {
			return siblings{}, fmt.Errorf("list the documents of OmniCluster %q: %w", cluster, err)
		}
	}

	return newSiblings(controlPlanes.Items, workers.Items, machines.Items), nil
}

// checkSynced checks whether this very generation is in what was applied.
func (r *reconciler[O]) checkSynced(_ context.Context, s *scope[O]) (loop.Outcome, error) {
	s.synced = judgeSynced(s.object, s.cluster, r.document.refs(s.cluster.Status))

	if left := untilFirstApply(s.object, s.cluster, s.synced, r.now()); left > 0 {
		return s.synced.Postponed(left), nil
	}

	return s.synced, nil
}

// transient returns the conditions that exist only while they are true.
func (s *scope[O]) transient() []loop.TransientCondition {
	return []loop.TransientCondition{{
		Condition: v1alpha1.ConditionHeld, On: s.synced.Reason() == v1alpha1.ReasonHeld, Reason: v1alpha1.ReasonHeld, Message: s.synced.Message(),
	}}
}

// checkReady checks Omni's state of the machines.
func (r *reconciler[O]) checkReady(_ context.Context, s *scope[O]) (loop.Outcome, error) {
	return r.document.ready(s.object, s.cluster, s.synced), nil
}

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
