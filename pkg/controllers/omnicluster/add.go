package omnicluster

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// Options are what the controller needs besides the manager. All are required except ManagementCluster, Skew and Now.
type Options struct {
	// Pool keeps the sessions with Omni, which the controller of OmniConnection opens.
	Pool *session.Pool
	// Objects receives the metrics.
	Objects *metrics.Objects
	// ClusterChanged fires for a cluster in Omni when something about it changed.
	ClusterChanged *trigger.Trigger[Remote]
	// HealthChanged fires with the UID of a connection when the health of its session changed.
	HealthChanged *trigger.Trigger[string]
	// SettleTime is how long destructive changes must be unchanged before they are applied.
	SettleTime time.Duration
	// JoinSettleTime is how long the documents of a cluster must be unchanged before a machine joins it; 0: it does not wait.
	JoinSettleTime time.Duration
	// ManagementCluster is the name of the management cluster in the ownership mark; it only informs.
	ManagementCluster string
	// Rollouts makes changes wait for their turn in the OmniRolloutPolicies.
	Rollouts bool
	// RolloutReadyTime is how long a cluster must be Ready before its turn in a rollout counts as done.
	RolloutReadyTime time.Duration
	// Overrides counts the changes that began out of turn. It may be nil without Rollouts.
	Overrides *metrics.Rollouts
	// Well receives since when clusters run well, as this process saw it. It may be nil without Rollouts.
	Well *hubs.Well
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
	// Owners receives which clusters this process sees in Omni not to be another hub's. It may be nil in tests.
	Owners *hubs.Owners
	// HubID is the ID of the hub in the ownership mark.
	HubID string
	// Concurrency is the number of clusters that are reconciled at the same time.
	Concurrency int
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller to a manager. The indexes of package index must be
// registered.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("omni-controller"), options)
	reconciler := loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events})
	changedSpec := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	mapper := NewMapper(mgr.GetClient())

	clusters := builder.ControllerManagedBy(mgr)
	if options.Rollouts {
		clusters = clusters.Watches(&v1alpha1.OmniRolloutPolicy{}, mapper.EnqueueForPolicy())
	}

	for _, kind := range watchedForDeletions() {
		clusters = clusters.Watches(kind, r.prunes.handler(r.options.Now, options.SettleTime))
	}

	return loop.For(clusters.Named("omnicluster"), &v1alpha1.OmniCluster{}).
		Watches(&v1alpha1.OmniControlPlane{}, handler.EnqueueRequestsFromMapFunc(ClusterOfDocument), changedSpec).
		Watches(&v1alpha1.OmniWorkers{}, handler.EnqueueRequestsFromMapFunc(ClusterOfDocument), changedSpec).
		Watches(&v1alpha1.OmniMachine{}, handler.EnqueueRequestsFromMapFunc(ClusterOfDocument), changedSpec).
		Watches(&v1alpha1.OmniConnection{}, handler.EnqueueRequestsFromMapFunc(mapper.ClustersOfConnection), builder.WithPredicates(ConnectionChanged())).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(mapper.OtherClaimants), builder.WithPredicates(loop.OnlyDeletions())).
		WatchesMetadata(index.SecretMetadata(), handler.EnqueueRequestsFromMapFunc(mapper.ClustersOfSecret)).
		WatchesMetadata(index.ConfigMapMetadata(), handler.EnqueueRequestsFromMapFunc(mapper.ClustersOfConfigMap)).
		WatchesRawSource(options.ClusterChanged.Source(mapper.ClustersOfRemote)).
		WatchesRawSource(options.HealthChanged.Source(mapper.ClustersOfConnectionUID)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: reconciler.Failures()}).
		Complete(reconciler)
}
