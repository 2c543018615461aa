package omnihelmrelease

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Options are what the controller needs besides the manager. All are required except Now.
type Options struct {
	// Access connects to the workload clusters.
	Access *clusteraccess.Access
	// Charts finds and downloads charts.
	Charts *charts.Fetcher
	// Renderers render them.
	Renderers *render.Pool
	// Objects receives the metrics of objects, Actions those of Helm actions.
	Objects *metrics.Objects
	Actions metrics.HelmActions
	// Registry gets the metrics of what waits for its turn.
	Registry prometheus.Registerer
	// HubID is the ID of the hub in marks of ownership.
	HubID string
	// Concurrency is the number of objects that are reconciled at the same time. As many actions may run in one
	// cluster, and eight times as many in all, of which one namespace has at most half. The same again for uninstalls, and for questions
	// to hosts.
	Concurrency int
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
	// Now replaces time.Now.
	Now func() time.Time
}

// Add adds the controller to a manager. The indexes of package index must be
// registered.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("omni-controller"), mgr.GetLogger().WithName("helm"), options)

	if err := options.Registry.Register(metrics.NewHelmQueue(r.runner.load)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}

	if err := mgr.Add(r.runner); err != nil {
		return fmt.Errorf("add the runner of Helm actions: %w", err)
	}

	return builder.ControllerManagedBy(mgr).
		Named("omnihelmrelease").
		For(&v1alpha1.OmniHelmRelease{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.OmniHelmRelease{}, handler.EnqueueRequestsFromMapFunc(r.dependents), builder.WithPredicates(concernsDependents())).
		Watches(&v1alpha1.OmniHelmRelease{}, handler.EnqueueRequestsFromMapFunc(r.otherClaimants), builder.WithPredicates(loop.OnlyDeletions())).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(r.releasesOfCluster),
			builder.WithPredicates(clusteraccess.ParentChanged())).
		Watches(&v1alpha1.OmniConnection{}, handler.EnqueueRequestsFromMapFunc(index.OfConnection(r.client, r.releasesOfCluster)),
			builder.WithPredicates(hubs.PreviousChanged())).
		WatchesMetadata(index.SecretMetadata(), handler.EnqueueRequestsFromMapFunc(r.releasesOfSecret)).
		WatchesMetadata(index.ConfigMapMetadata(), handler.EnqueueRequestsFromMapFunc(r.releasesOfConfigMap)).
		WatchesRawSource(trigger.Names(r.wake)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: loop.RateLimiter()}).
		Complete(loop.New(r.kind(), loop.Settings{Client: mgr.GetClient(), Events: r.events}))
}

// concernsDependents accepts the changes of a release that may end, or begin, what its dependents wait for, or a cycle: not every
// status that it writes.
func concernsDependents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.OmniHelmRelease)
		after, also := e.ObjectNew.(*v1alpha1.OmniHelmRelease)

		return ok && also && (done(before) != done(after) || inCycle(before) != inCycle(after) || before.UID != after.UID ||
			!apiequality.Semantic.DeepEqual(before.Spec.DependsOn, after.Spec.DependsOn))
	}}
}

// dependents returns the releases that wait for a release.
func (r *reconciler) dependents(ctx context.Context, release client.Object) []reconcile.Request {
	return r.requests(ctx, release.GetNamespace(), index.ByDependency, release.GetName())
}

// otherClaimants returns the objects that claim the same release in the same cluster: one of them may have waited for the
// owner to go. Where a release is cannot be changed, so nothing else frees it.
func (r *reconciler) otherClaimants(ctx context.Context, object client.Object) []reconcile.Request {
	release, ok := object.(*v1alpha1.OmniHelmRelease)
	if !ok {
		return nil
	}

	var requests []reconcile.Request

	index.Each(ctx, r.client, &v1alpha1.OmniHelmReleaseList{}, func(other *v1alpha1.OmniHelmRelease) {
		if other.Name != release.Name && fullName(other) == fullName(release) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}, client.InNamespace(release.Namespace), client.MatchingFields{index.ByCluster: release.Spec.ClusterRef.Name})

	return requests
}

func (r *reconciler) releasesOfCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.requests(ctx, cluster.GetNamespace(), index.ByCluster, cluster.GetName())
}

// releasesOfSecret returns the releases that read a Secret, for the chart, as values or as kubeconfig.
func (r *reconciler) releasesOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return append(r.requests(ctx, secret.GetNamespace(), index.ByValueSecret, secret.GetName()),
		r.requests(ctx, secret.GetNamespace(), index.ByKubeconfigSecret, secret.GetName())...)
}

func (r *reconciler) releasesOfConfigMap(ctx context.Context, configMap client.Object) []reconcile.Request {
	return r.requests(ctx, configMap.GetNamespace(), index.ByValueConfigMap, configMap.GetName())
}

// requests returns the releases with a value in an index.
func (r *reconciler) requests(ctx context.Context, namespace, by, value string) []reconcile.Request {
	return index.Requests(ctx, r.client, &v1alpha1.OmniHelmReleaseList{}, client.InNamespace(namespace), client.MatchingFields{by: value})
}

// shownRevisions is how many revisions the status lists.
const shownRevisions = 5

// report writes the results of a run and of the last action into the status.
func (r *reconciler) report(ctx context.Context, s *scope) {
	status := &s.release.Status

	if s.opened != nil && status.ReleaseName != "" {
		// What it made in another cluster before stays there, and nothing else would record that.
		if moved := clusteraccess.Moved(status.ClusterID, s.opened.ClusterID); moved != "" {
			r.stays(s, moved)
		}

		status.ClusterID = s.opened.ClusterID
	}

	if !s.last.ended.IsZero() {
		status.LastAction = string(s.last.action)
		status.LastActionTime = new(words.StoredTime(s.last.ended))

		if s.release.DeletionTimestamp.IsZero() {
			status.LastAttemptedDigest, status.Failures = s.last.attempt, int32(s.last.failures()) //nolint:gosec // a small count
		}
	}

	// A release that is about to be taken over does not belong to this object yet.
	if s.observed != nil && (s.latest() == nil || marked(*s.observed).Owner == string(s.release.UID)) {
		r.reportRevisions(ctx, s)
	}

	if s.done {
		status.ReleaseName, status.Namespace = s.release.EffectiveReleaseName(), s.release.Spec.Namespace
		status.ChartDigest, status.ValuesDigest, status.Failures = s.resolved.ArchiveDigest, s.values.Digest(), 0
		// The release is as the object says, whichever state of it made the revision.
		status.LastAttemptedGeneration = max(s.release.Generation, s.latest().Generation)
	}
}

// reportRevisions writes the revisions of Helm's records. It reads the record of the revision in effect only when that
// is another one.
func (r *reconciler) reportRevisions(ctx context.Context, s *scope) {
	status := &s.release.Status
	changed := status.Chart == ""
	latest := s.latest()

	number, helmStatus := int32(0), ""
	if latest != nil {
		number, helmStatus = int32(latest.Number), string(latest.Status) //nolint:gosec // Helm counts from 1
	}

	changed = changed || status.Revision != number || status.ReleaseStatus != helmStatus
	status.Revision, status.ReleaseStatus = number, helmStatus
	status.History = history(s.observed.Revisions)

	if effective := inEffect(s.observed.Revisions); changed && effective != nil {
		status.Chart, status.ChartVersion, status.AppVersion = "", effective.ChartVersion, ""

		// If it stays empty, the next run reads it again.
		if found, err := details(ctx, s, effective.Number); err == nil {
			status.Chart, status.ChartVersion, status.AppVersion = redact.Line(found.Chart), redact.Line(found.ChartVersion), redact.Line(found.AppVersion)
		}
	}
}

func inEffect(revisions []helm.Revision) *helm.Revision {
	for i := range revisions {
		if revisions[i].Status == helm.StatusDeployed {
			return &revisions[i]
		}
	}

	return nil
}

func history(revisions []helm.Revision) []v1alpha1.HelmRevision {
	var listed []v1alpha1.HelmRevision

	for i := range revisions[:min(len(revisions), shownRevisions)] {
		revision := &revisions[i]
		listed = append(listed, v1alpha1.HelmRevision{
			Revision: int32(revision.Number), ChartVersion: revision.ChartVersion, Status: string(revision.Status), //nolint:gosec // Helm counts from 1
			Time: new(words.StoredTime(revision.Modified)),
		})
	}

	return listed
}
