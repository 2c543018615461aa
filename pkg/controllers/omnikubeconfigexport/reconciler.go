// Package omnikubeconfigexport is the controller of OmniKubeconfigExport: it requests kubeconfigs from Omni, keeps one
// in a Secret, and renews it in time.
//
// Pure functions decide everything that needs no request: format.go reads and writes kubeconfigs and tokens, need.go has the
// times, claim.go, adopt.go and need.go judge the existing Secret. reconciler.go and issue.go call them in order. Only secret.go
// writes Secrets, and only removal.go deletes them.
//
// A token ends when it expires, or when an Admin of Omni deletes the key that signed it, and with it all tokens of that key. So
// the controller requests none that it could not store, limits the requests of each export, and keeps an issued kubeconfig in
// memory until it is stored. probe.go tries the stored ones out, because nobody tells of a key that is gone.
package omnikubeconfigexport

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
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
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	// kindName is the kind's name in metrics.
	kindName = "OmniKubeconfigExport"
	// interval is how often an export is reconciled when nothing is due.
	interval = 10 * time.Minute
	// callPause is how long to wait before the next call to Omni.
	callPause = 10 * time.Second
	// overdueDivisor is the share of the time since a rotation was due after which it is tried again: after a minute it is
	// tried every ten seconds, after an hour every six minutes.
	overdueDivisor = 10
	// connectionDivisor is the share of the workers that may ask one Omni for kubeconfigs: one that hangs leaves workers to
	// the others.
	connectionDivisor = 4
	// storeTimeout bounds the writes of the target.
	storeTimeout = 20 * time.Second
)

// reconciler has what the phases need.
type reconciler struct {
	client   client.Client // cached; Secrets as metadata only
	live     client.Reader
	events   events.EventRecorder
	options  Options
	requests *requests
	slots    *limiter.Limiter[types.UID] // by OmniConnection
	wake     *trigger.Trigger[types.NamespacedName]
	probes   *probes

	corrections sync.Map // by name of the export, the last correction

	firstLook sync.Once
	started   time.Time
}

func newReconciler(cached client.Client, live client.Reader, recorder events.EventRecorder, options Options) *reconciler {
	if options.Now == nil {
		options.Now = time.Now
	}

	r := &reconciler{
		client: cached, live: live, events: recorder, options: options, requests: &requests{exports: map[types.NamespacedName]*requestsOf{}},
		slots: limiter.New(limiter.Limits[types.UID]{PerKey: int64(max(1, options.Concurrency/connectionDivisor))}),
		wake:  trigger.New[types.NamespacedName](trigger.Pacing{}),
	}
	r.probes = newProbes(options.Now, r.wake.Fire)

	return r
}

// scope is what the phases of one run share.
type scope struct {
	export     *v1alpha1.OmniKubeconfigExport
	cluster    *v1alpha1.OmniCluster
	connection *v1alpha1.OmniConnection
	hubs       hubs.Hubs // whose marks count as the export's own

	shape   shape
	want    ingredients
	secret  *corev1.Secret // the target; nil if it does not exist
	found   found          // what a target of ours holds, or held that was deleted to be made again
	fresh   *issued        // a kubeconfig that is not stored yet
	cause   cause          // of a fresh kubeconfig
	late    string         // why a renewal that is due did not happen; empty if all is well
	doubt   string         // why nobody knows whether a new one is needed; empty if that is known
	refused string         // why Omni does not accept the kubeconfig, and what to do, if a new one would not help now
	stored  bool           // the target holds what it should

	onlyTarget bool // no former target is left that is to go

	adopted bool // the target was somebody else's until now
}

func (r *reconciler) kind() loop.Kind[*v1alpha1.OmniKubeconfigExport, *scope] {
	return loop.Kind[*v1alpha1.OmniKubeconfigExport, *scope]{
		New:       func() *v1alpha1.OmniKubeconfigExport { return &v1alpha1.OmniKubeconfigExport{} },
		Finalizer: v1alpha1.Finalizer,
		Interval:  r.interval,
		NewScope: func(export *v1alpha1.OmniKubeconfigExport) *scope {
			r.firstLook.Do(func() { r.started = r.options.Now() })

			return &scope{export: export}
		},
		Phases: []loop.Phase[*scope]{
			{Condition: v1alpha1.ConditionSourceReady, Run: r.findSource},
			{Condition: v1alpha1.ConditionIssued, Run: r.issue},
			{Condition: v1alpha1.ConditionWritten, Run: r.write},
		},
		Delete:   []loop.Phase[*scope]{{Run: r.delete}},
		Report:   r.report,
		Reported: r.measure,
		Gone:     r.gone,
	}
}

// interval returns when the export is due for its next rotation, or its kubeconfig for the next try; no watch triggers that.
func (r *reconciler) interval(export *v1alpha1.OmniKubeconfigExport) time.Duration {
	due := r.untilRotation(export)
	// One that is overdue waits for something else, such as a renewal that fails.
	if left := r.requests.nextProbe(client.ObjectKeyFromObject(export)).Sub(r.options.Now()); left > 0 {
		due = min(due, max(left, time.Second))
	}

	return due
}

func (r *reconciler) untilRotation(export *v1alpha1.OmniKubeconfigExport) time.Duration {
	next := export.Status.NextRotationTime
	if next == nil {
		return interval
	}

	left := next.Sub(r.options.Now())
	if left <= 0 {
		// The rotation is due and did not happen. What prevents it may last for weeks.
		return min(max(-left/overdueDivisor, callPause), interval)
	}

	return min(max(left, time.Second), interval)
}

// findSource gets the cluster and its connection. A suspended cluster still gives access, because that changes nothing
// of it.
func (r *reconciler) findSource(ctx context.Context, s *scope) (loop.Outcome, error) {
	name := s.export.Spec.ClusterRef.Name
	cluster := &v1alpha1.OmniCluster{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.export.Namespace, Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return loop.Wait(0, v1alpha1.ReasonClusterNotFound, "OmniCluster %q does not exist in this namespace; the Secret stays as it is", name), nil
	}

	if err != nil {
		return loop.Outcome{}, fmt.Errorf("read OmniCluster %q: %w", name, err)
	}

	connection := &v1alpha1.OmniConnection{}

	err = r.client.Get(ctx, client.ObjectKey{Namespace: s.export.Namespace, Name: cluster.Spec.ConnectionRef.Name}, connection)
	if apierrors.IsNotFound(err) {
		return loop.Wait(0, v1alpha1.ReasonConnectionNotFound, "OmniConnection %q of OmniCluster %q does not exist; the Secret stays as it is",
			cluster.Spec.ConnectionRef.Name, name), nil
	}

	if err != nil {
		return loop.Outcome{}, fmt.Errorf("read OmniConnection %q: %w", cluster.Spec.ConnectionRef.Name, err)
	}

	s.cluster, s.connection, s.hubs = cluster, connection, hubs.Of(r.options.HubID, connection)
	s.shape, s.want = plan(s.export, cluster, connection)

	return loop.Continue(v1alpha1.ReasonSourceFound, "OmniCluster %q is cluster %q of OmniConnection %q",
		name, s.shape.cluster, connection.Name), nil
}

// plan returns the shape to write and the ingredients.
func plan(export *v1alpha1.OmniKubeconfigExport, cluster *v1alpha1.OmniCluster, connection *v1alpha1.OmniConnection) (shape, ingredients) {
	spec := export.Spec
	made := shape{
		format: spec.Format, key: spec.TargetSecretRef.Key, cluster: cluster.EffectiveClusterName(),
		user: spec.ServiceAccount.User, namespace: spec.ContextNamespace, ca: connection.Spec.CABundle,
	}

	return made, ingredients{
		User: made.user, Groups: spec.ServiceAccount.Groups, TTL: string(spec.TTL),
		ClusterName: made.cluster, ClusterID: cluster.Status.OmniClusterID, Endpoint: connection.Spec.Endpoint, CA: made.ca,
		Key: made.key, Format: made.format, ContextNamespace: made.namespace,
	}
}

// readTarget reads the target Secret from the API server, so that no cache holds its content.
func (r *reconciler) readTarget(ctx context.Context, s *scope) error {
	target := s.export.EffectiveTarget()
	secret := &corev1.Secret{}

	err := r.live.Get(ctx, target, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("read Secret %q: %w", shownTarget(s.export, target), err)
	}

	s.secret = secret

	return nil
}

// lifetime returns the times from which the rotation of a kubeconfig is computed.
func (s *scope) lifetime(is found) lifetime {
	ttl, renewBefore := s.export.Spec.TTL.OrDefault(0), s.export.Spec.RenewBefore.OrDefault(0)

	return lifetime{
		ttl: ttl, renewBefore: renewBefore, issued: is.claims.issued(), expires: is.claims.expires(), rotated: is.rotated, seed: string(s.export.UID) + is.hash,
	}
}

// times returns what the age of a kubeconfig is compared with.
func (r *reconciler) times() times { return times{now: r.options.Now(), differ: r.options.Skew.Now()} }

// gone forgets everything about an export that does not exist any more.
func (r *reconciler) gone(name types.NamespacedName) {
	r.requests.forget(name)
	r.probes.Forget(name)
	r.corrections.Delete(name)
	r.options.Objects.Forget(metrics.Object{Kind: kindName, NamespacedName: name})
	r.options.Kubeconfigs.Forget(name)
}

// Options are what the controller needs besides the manager. All are required except Sources, Namespaces, Refused,
// Skew and Now.
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
	// Refused is fired with the name of a Secret whose kubeconfig was answered with 401. Nil: nobody says so.
	Refused *trigger.Trigger[types.NamespacedName]
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

	made := loop.For(builder.ControllerManagedBy(mgr).Named("omnikubeconfigexport"), &v1alpha1.OmniKubeconfigExport{}).
		Watches(&v1alpha1.OmniKubeconfigExport{}, handler.EnqueueRequestsFromMapFunc(r.otherClaimants), builder.WithPredicates(loop.OnlyDeletions())).
		WatchesMetadata(index.SecretMetadata(), handler.EnqueueRequestsFromMapFunc(r.exportsOfSecret)).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(r.exportsOfCluster), builder.WithPredicates(clusterChanged())).
		Watches(&v1alpha1.OmniConnection{}, handler.EnqueueRequestsFromMapFunc(index.OfConnection(r.client, r.exportsOfCluster)), builder.WithPredicates(connectionChanged())).
		WatchesRawSource(trigger.Names(r.wake)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: loop.RateLimiter()})
	if options.Refused != nil {
		made = made.WatchesRawSource(options.Refused.Source(r.refusedKubeconfig))
	}

	return made.Complete(loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events}))
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

// report writes the content of the Secret into the status, so that a status that was lost comes back the same. If
// nothing was stored, the last one stays.
func (r *reconciler) report(_ context.Context, s *scope) {
	if !s.stored || !s.found.intact {
		return
	}

	status := &s.export.Status
	status.ClusterName = s.shape.cluster

	// Only the status knows a former target in a namespace that is not served any more: it stays named until it is gone.
	if s.onlyTarget || status.TargetSecretRef == nil {
		status.TargetSecretRef = &v1alpha1.TargetSecretReference{
			Name: s.secret.Name, Namespace: elsewhere(s.export, s.secret.Namespace), Key: s.shape.mainKey(),
		}
	}

	status.KubeconfigHash = s.found.hash
	status.ExpirationTime = new(words.StoredTime(s.found.claims.expires()))
	status.LastRotationTime = new(words.StoredTime(s.found.rotated))
	status.NextRotationTime = new(words.StoredTime(s.lifetime(s.found).nextRotation(r.options.Now())))
}

// measure updates the metrics of an export.
func (r *reconciler) measure(export *v1alpha1.OmniKubeconfigExport) {
	name := client.ObjectKeyFromObject(export)

	var expires, due time.Time
	if export.Status.ExpirationTime != nil {
		expires = export.Status.ExpirationTime.Time
	}

	if export.Status.NextRotationTime != nil {
		due = export.Status.NextRotationTime.Time
	}

	r.options.Objects.SetInfo(metrics.Object{Kind: kindName, NamespacedName: name}, export.Status.Conditions, export.Spec.ClusterRef.Name)
	r.options.Kubeconfigs.SetExpiration(name, expires)
	r.options.Kubeconfigs.SetRenewal(name, due)
}
