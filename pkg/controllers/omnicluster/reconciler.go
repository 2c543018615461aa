// Package omnicluster is the controller of OmniCluster: it collects the documents of a cluster, renders them into one
// Omni cluster template, plans against the local copy of Omni's state, applies the plan, and reports Omni's state of
// the cluster.
//
// Package consent decides everything that could destroy something: to whom the cluster belongs, which part of a plan
// may be applied now, and what a deletion does. This package collects the facts for these decisions, and carries them
// out.
//
// Mapper says which OmniClusters a change concerns, by the indexes of package index. valuesFrom reads the texts of valueFrom, and
// SecretTexts keeps the content of Secrets out of messages.
package omnicluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session/opening"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// kindName is the kind's name in metrics.
const kindName = "OmniCluster"

const (
	// defaultInterval is used if spec.syncInterval cannot be parsed.
	defaultInterval = 5 * time.Minute
	// catchUpTime is how long a run waits for the local copy to show our own
	// last writes before it gives the worker back.
	catchUpTime = 2 * time.Second
	// catchUpPoll is how often the run checks the copy meanwhile.
	catchUpPoll = 10 * time.Millisecond
)

// reconciler has what the phases need.
type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	options Options

	processStates processStates
	prunes        prunes // of documents, by namespace

	firstLook sync.Once
	started   time.Time // when the first object was looked at
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	return &reconciler{client: cached, live: live, events: recorder, options: options}
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniCluster, *scope] {
	return loop.Kind[*v1alpha1.OmniCluster, *scope]{
		New:       func() *v1alpha1.OmniCluster { return &v1alpha1.OmniCluster{} },
		Finalizer: v1alpha1.Finalizer,
		Interval: func(cluster *v1alpha1.OmniCluster) time.Duration {
			return max(cluster.Spec.SyncInterval.OrDefault(defaultInterval), v1alpha1.MinSyncInterval)
		},
		Suspended:    func(cluster *v1alpha1.OmniCluster) bool { return cluster.Spec.Suspend },
		RunSuspended: true,
		NewScope: func(cluster *v1alpha1.OmniCluster) *scope {
			r.firstLook.Do(func() { r.started = r.options.Now() })
			r.correctTimes(cluster)
			r.restoreSecondWriter(cluster)

			return &scope{cluster: cluster, name: cluster.EffectiveClusterName(), hubs: hubs.Hubs{Own: r.options.HubID}}
		},
		Phases: []loop.Phase[*scope]{
			{Condition: v1alpha1.ConditionConnectionReady, Run: r.connect},
			{Condition: v1alpha1.ConditionAssembled, Run: r.assemble},
			{Condition: v1alpha1.ConditionValidated, Run: r.validate},
			{Condition: v1alpha1.ConditionPlanned, Run: r.makePlan},
			{Condition: v1alpha1.ConditionSynced, Run: r.sync},
			{Condition: v1alpha1.ConditionAvailable, Run: r.checkAvailable},
		},
		Delete:        []loop.Phase[*scope]{{Run: r.delete}},
		Report:        r.report,
		Transient:     (*scope).transient,
		Due:           r.turnDue,
		StatusWritten: r.announceStatus,
		Reported:      r.measure,
		Gone: func(name types.NamespacedName) {
			r.processStates.forget(name)
			r.options.Well.Forget(name)
			r.options.Owners.Forget(name)
			r.options.Objects.Forget(metrics.Object{Kind: kindName, NamespacedName: name})
		},
		Close: func(s *scope) {
			if s.lease != nil {
				s.lease.Release()
			}
		},
	}
}

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

// connect finds the session with Omni and reads the cluster there.
func (r *reconciler) connect(ctx context.Context, s *scope) (loop.Outcome, error) {
	outcome, err := r.findSession(ctx, s)
	if err != nil || !outcome.Continues() {
		s.postponed = outcome.Postpones()

		return outcome, err
	}

	// Only now: most runs of a large new fleet end without a slot.
	if s.input, err = collect(ctx, r.client, s.cluster); err != nil {
		return loop.Outcome{}, err
	}

	return r.readCluster(ctx, s)
}

// findSession leases the session that the connection's controller keeps.
func (r *reconciler) findSession(ctx context.Context, s *scope) (loop.Outcome, error) {
	name := s.cluster.Spec.ConnectionRef.Name
	connection := &v1alpha1.OmniConnection{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, connection)
	if client.IgnoreNotFound(err) != nil {
		return loop.Outcome{}, fmt.Errorf("read OmniConnection %q: %w", name, err)
	}

	if err != nil {
		return loop.Wait(0, v1alpha1.ReasonConnectionNotFound, "OmniConnection %q does not exist", name), nil
	}

	s.connection, s.hubs = connection, hubs.Of(r.options.HubID, connection)

	lease, open := r.options.Pool.Get(string(connection.UID))
	if !open {
		return r.unlessOpening(connection, loop.Wait(0, v1alpha1.ReasonConnectionNotReady, "%s", notConnected(connection))), nil
	}

	s.lease = lease

	if outcome := opening.Endpoint(lease, connection); !outcome.Continues() {
		return outcome, nil
	}

	if health := lease.Health(); !health.Synced {
		return r.unsynced(s, health), nil
	}

	return takeSlot(s), nil
}

// unsynced returns the outcome while the copy of Omni is not current. Nothing is planned from it meanwhile. A restart of
// Omni leaves the status of the whole fleet as it is; a deletion counts from its first run how long Omni is away, and who
// asks for something is answered.
func (r *reconciler) unsynced(s *scope, health mirror.Health) loop.Outcome {
	outcome := loop.Wait(0, v1alpha1.ReasonMirrorNotSynced, "OmniConnection %q: %s", s.connection.Name, health.Message)
	if health.Class == omni.ClassNotReady {
		return r.unlessOpening(s.connection, outcome)
	}

	if left := health.Grace(r.options.Now()); left > 0 && s.cluster.DeletionTimestamp.IsZero() && loop.IsAnswered(s.cluster) {
		return outcome.Postponed(left)
	}

	return loop.Wait(0, outcome.Reason(), "%s; nothing newer than %s is known", outcome.Message(), words.Time(health.Since))
}

// unlessOpening replaces the outcome while the session is being opened. The session wakes the cluster when it is open and when
// it is complete.
func (r *reconciler) unlessOpening(connection *v1alpha1.OmniConnection, outcome loop.Outcome) loop.Outcome {
	return opening.Unless(r.options.Pool, connection, r.started, r.options.Now(), outcome)
}

// takeSlot limits the workers that the runs of one connection use. A cluster without a slot keeps its status, because
// nothing is wrong with it; only if it is not Ready and the wait may be long, the outcome has what it waits for. A
// deletion never gets that outcome: it would mistake it for a broken connection.
func takeSlot(s *scope) loop.Outcome {
	if s.lease.Enter(s.name) {
		return loop.Proceed()
	}

	s.turnedAway = true
	pause := limiter.Jitter(limiter.WakePause)
	ready := apimeta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionReady)

	if ready || !s.cluster.DeletionTimestamp.IsZero() || !s.lease.Slow() {
		return loop.Postpone(pause, v1alpha1.ReasonProgressing, "other clusters of the connection come first")
	}

	return loop.Wait(pause, v1alpha1.ReasonConnectionNotReady,
		"OmniConnection %q: Omni answers slowly or not at all, and other clusters wait for it; this one comes next by itself", s.connection.Name)
}

// notConnected returns why a connection cannot be used, with the message of its own condition, so that nobody has to
// look there first. Messages of conditions have no secrets.
func notConnected(connection *v1alpha1.OmniConnection) string {
	text := fmt.Sprintf("OmniConnection %q is not connected to Omni", connection.Name)

	ready := apimeta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == "" {
		return text + "; see its conditions"
	}

	return text + ": " + ready.Reason + ": " + ready.Message
}
