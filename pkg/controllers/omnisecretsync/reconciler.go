// Package omnisecretsync is the controller of OmniSecretSync: it copies the data and the type of one Secret into a
// workload cluster, and nothing else of the Secret.
//
// Pure functions decide: claim.go whose a Secret there is and what may be done to it, content.go what it has to contain.
// remote.go knows where copies are or may be. write.go and delete.go carry that out.
package omnisecretsync

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
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
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// kindName is the kind's name in metrics.
const kindName = "OmniSecretSync"

const (
	// interval is how often the target is checked without a trigger: then a change in the workload cluster is found.
	interval = 5 * time.Minute
	// locationTimeout bounds what one run does at one location of a workload cluster, all requests together.
	locationTimeout = time.Minute
)

// reconciler has what the phases need.
type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	options Options
	wake    *trigger.Trigger[types.NamespacedName]
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	return &reconciler{client: cached, live: live, events: recorder, options: options, wake: trigger.New[types.NamespacedName](trigger.Pacing{})}
}

// scope is what the phases of one run share. Fields are empty until their phase
// has run.
type scope struct {
	sync   *v1alpha1.OmniSecretSync
	want   content
	source types.UID // of the Secret that is copied
	opened *clusteraccess.Opened
	held   map[string][]byte // by the target when it was read

	aboutToWrite  bool // the status has to name the target first
	oldestRemoved bool // nothing is at the oldest pending location any more
	wrote         bool
	synced        bool       // the target has the desired content
	removed       []location // where the Secrets of former targets were
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniSecretSync, *scope] {
	return loop.Kind[*v1alpha1.OmniSecretSync, *scope]{
		New:       func() *v1alpha1.OmniSecretSync { return &v1alpha1.OmniSecretSync{} },
		Finalizer: v1alpha1.Finalizer,
		Interval:  func(*v1alpha1.OmniSecretSync) time.Duration { return interval },
		Prepare: func(ctx context.Context, sync *v1alpha1.OmniSecretSync) {
			sync.Status.OtherHub = clusteraccess.OtherHub(ctx, r.client, r.options.HubID, clusteraccess.RequesterOf(sync, nil))
		},
		NewScope: func(sync *v1alpha1.OmniSecretSync) *scope { return &scope{sync: sync} },
		Phases: []loop.Phase[*scope]{
			{Condition: v1alpha1.ConditionSourceFound, Run: r.findSource},
			{Condition: v1alpha1.ConditionConnected, Run: r.connect},
			{Condition: v1alpha1.ConditionSynced, Run: r.write},
		},
		Delete: []loop.Phase[*scope]{{Run: r.delete}},
		Report: r.report,
		Close:  func(s *scope) { s.opened.Done() },
		Reported: func(sync *v1alpha1.OmniSecretSync) {
			r.options.Objects.SetInfo(objectOf(client.ObjectKeyFromObject(sync)), sync.Status.Conditions, sync.Spec.ClusterRef.Name)
		},
		Gone: func(name types.NamespacedName) { r.options.Objects.Forget(objectOf(name)) },
	}
}

func objectOf(name types.NamespacedName) metrics.Object {
	return metrics.Object{Kind: kindName, NamespacedName: name}
}

// findSource reads the source and computes the desired content.
func (r *reconciler) findSource(ctx context.Context, s *scope) (loop.Outcome, error) {
	name := s.sync.Spec.SourceSecretRef.Name
	source, err := sources.Secret(ctx, r.live, sources.Reference{Namespace: s.sync.Namespace, Name: name, Field: "spec.sourceSecretRef"})
	if outcome, done := sources.Outcome(err, v1alpha1.ReasonSourceNotFound, "; what was written before stays"); done {
		return outcome, nil
	}

	if err != nil {
		return loop.Outcome{}, err
	}

	if s.want, err = build(s.sync, source, r.options.HubID); err != nil {
		return loop.Wait(0, v1alpha1.ReasonSourceNotFound, "Secret %q: %s; what was written before stays", name, err), nil // it is the outcome
	}

	s.source = source.UID

	return loop.Continue(v1alpha1.ReasonSucceeded, "Secret %q was found", name), nil
}

// connect connects to the workload cluster.
func (r *reconciler) connect(ctx context.Context, s *scope) (loop.Outcome, error) {
	opened, outcome, err := r.options.Access.Open(ctx, clusteraccess.RequesterOf(s.sync, r.wake))
	s.opened = opened

	return outcome, err
}

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

// report writes the result of a run into the status.
func (r *reconciler) report(_ context.Context, s *scope) {
	status := &s.sync.Status

	// This comes first: it concerns what was written before this run.
	r.reportCluster(s)

	where := wantedLocation(s.sync)

	switch {
	case s.oldestRemoved:
		status.PendingTargets = status.PendingTargets[1:]
	case s.aboutToWrite && status.Target == nil:
		status.Target = &v1alpha1.SyncedSecret{Namespace: where.namespace, Name: where.name}
	case s.aboutToWrite:
		status.PendingTargets = append(status.PendingTargets, v1alpha1.SyncedSecret{Namespace: where.namespace, Name: where.name})
	}

	if s.wrote {
		status.LastSyncTime = new(words.StoredTime(r.options.Now()))
	}

	if s.synced {
		status.PendingTargets = s.formerTargets(where)
		status.Target = &v1alpha1.SyncedSecret{
			Namespace: where.namespace, Name: where.name, Type: string(s.want.secretType), Hash: s.want.hash(),
			Generation: s.sync.Generation,
		}
	}
}

// formerTargets returns what the status records of the Secrets that were not removed, without that of the target.
func (s *scope) formerTargets(target location) []v1alpha1.SyncedSecret {
	var former []v1alpha1.SyncedSecret

	for _, known := range knownSecrets(s.sync) {
		if where := locationOf(known); where != target && !slices.Contains(s.removed, where) {
			former = append(former, known)
		}
	}

	return former
}

// reportCluster records the cluster in which the object has written. What it wrote in another one before stays there,
// and nothing else would record that.
func (r *reconciler) reportCluster(s *scope) {
	if s.opened == nil || !s.aboutToWrite && !s.oldestRemoved && !s.synced && s.sync.DeletionTimestamp.IsZero() {
		return
	}

	if moved := clusteraccess.Moved(s.sync.Status.ClusterID, s.opened.ClusterID); moved != "" {
		for _, where := range knownLocations(s.sync) {
			r.announceLeftIn(s, where, moved)
		}

		forgetWrites(&s.sync.Status)
	}

	s.sync.Status.ClusterID = s.opened.ClusterID
}

// forgetWrites forgets that writes were confirmed: they were in another cluster.
func forgetWrites(status *v1alpha1.OmniSecretSyncStatus) {
	for i := range status.PendingTargets {
		status.PendingTargets[i].Hash = ""
	}

	if status.Target != nil {
		status.Target.Hash = ""
	}
}
