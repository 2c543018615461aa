// Package kubeconfigsecret releases the Secrets that package clusteraccess protects with a finalizer.
//
// A Secret with a kubeconfig carries v1alpha1.KubeconfigInUseFinalizer while an OmniSecretSync or OmniHelmRelease may
// need it to clean up: when a whole namespace is deleted at once, the Secret must not go before the releases are
// uninstalled. If only the Secret is deleted, it is released after a moment, unless
// the namespace is being deleted, or may be: while omni-apiserver is away, its objects cannot be.
package kubeconfigsecret

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// reconciler reads the metadata of Secrets, never their content.
type reconciler struct {
	client client.Client
	live   client.Reader    // of Namespaces, and of a Secret that is changed
	now    func() time.Time // by the clock of kube-apiserver, which wrote when a Secret was deleted
}

// Add adds the controller to a manager, for the namespace that is served; empty: all. The indexes of package index must be
// registered. ahead is by how much the clock of kube-apiserver is ahead of ours; nil: they are the same.
func Add(mgr manager.Manager, namespace string, ahead func() time.Duration) error {
	r := &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), now: serverTime(ahead)}
	held := loop.Holds(namespace, v1alpha1.KubeconfigInUseFinalizer)

	return builder.ControllerManagedBy(mgr).
		Named("kubeconfigsecret").
		WatchesMetadata(index.SecretMetadata(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(held)).
		Watches(&v1alpha1.OmniSecretSync{}, handler.EnqueueRequestsFromMapFunc(secretOf)).
		Watches(&v1alpha1.OmniHelmRelease{}, handler.EnqueueRequestsFromMapFunc(secretOf)).
		WithOptions(controller.Options{RateLimiter: loop.RateLimiter()}).
		Complete(r)
}

// serverTime returns the clock of kube-apiserver.
func serverTime(ahead func() time.Duration) func() time.Time {
	if ahead == nil {
		return time.Now
	}

	return func() time.Time { return time.Now().Add(ahead()) }
}

// secretOf returns the Secret that an object reads its kubeconfig from.
func secretOf(_ context.Context, object client.Object) []reconcile.Request {
	var name string

	switch o := object.(type) {
	case *v1alpha1.OmniSecretSync:
		name = o.Spec.KubeconfigSecretRef.Name
	case *v1alpha1.OmniHelmRelease:
		name = o.Spec.KubeconfigSecretRef.Name
	}

	if name == "" {
		return nil
	}

	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// Reconcile implements reconcile.Reconciler: it removes the finalizer of a Secret that nobody needs any more.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return sources.ReleaseFinalizer(ctx, r.client, r.live, request.NamespacedName, v1alpha1.KubeconfigInUseFinalizer, r.isNeeded)
}

// isNeeded implements sources.NeedFinalizer.
func (r *reconciler) isNeeded(ctx context.Context, secret *metav1.PartialObjectMetadata) (needed bool, again time.Duration, err error) {
	current, err := r.use(ctx, client.ObjectKeyFromObject(secret))
	if err != nil {
		return false, 0, err
	}

	if deleted := secret.DeletionTimestamp; deleted != nil {
		current.deleting, current.since = true, r.now().Sub(deleted.Time)
	}

	letGo, again := current.decide()
	if letGo && current.users > 0 {
		if current.namespaceGoes, err = r.namespaceGoes(ctx, secret.Namespace); err != nil {
			return false, 0, err
		}

		letGo, again = current.decide()
	}

	return !letGo, again, nil
}

// namespaceGoes reports whether a namespace is being deleted. Without the right to get it, it counts as one that goes: what
// needs the kubeconfig to clean up may be deleted yet, when omni-apiserver is back. The log of the start names the missing right.
func (r *reconciler) namespaceGoes(ctx context.Context, name string) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))

	switch err := r.live.Get(ctx, client.ObjectKey{Name: name}, namespace); {
	case apierrors.IsForbidden(err):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read Namespace %q: %w", name, err)
	}

	return !namespace.DeletionTimestamp.IsZero(), nil
}

// use counts the objects that refer to a Secret.
func (r *reconciler) use(ctx context.Context, secret types.NamespacedName) (use, error) {
	var found use

	count := func(object client.Object) {
		found.users++

		if !object.GetDeletionTimestamp().IsZero() && controllerutil.ContainsFinalizer(object, v1alpha1.Finalizer) {
			found.leaving++
		}
	}

	options := []client.ListOption{client.InNamespace(secret.Namespace), client.MatchingFields{index.ByKubeconfigSecret: secret.Name}}
	syncs, releases := &v1alpha1.OmniSecretSyncList{}, &v1alpha1.OmniHelmReleaseList{}

	for _, list := range []client.ObjectList{syncs, releases} {
		if err := r.client.List(ctx, list, options...); err != nil {
			return use{}, fmt.Errorf("list the users of the Secret: %w", err)
		}
	}

	for i := range syncs.Items {
		count(&syncs.Items[i])
	}

	for i := range releases.Items {
		count(&releases.Items[i])
	}

	return found, nil
}

// grace is how long a deleted Secret waits for its users to be deleted as well.
// The namespace controller deletes kind after kind, within seconds.
const grace = 30 * time.Second

// use has the facts that decide whether a Secret is still needed.
type use struct {
	users    int // objects that name the Secret
	leaving  int // of these, those that are being deleted and have not cleaned up yet
	deleting bool
	since    time.Duration // since the deletion of the Secret

	namespaceGoes bool // so the users will be deleted, too, also if that fails for now
}

// decide reports whether to release the Secret, and if not, when to check again (0: when something changes).
func (u use) decide() (letGo bool, again time.Duration) {
	switch {
	case u.users == 0:
		return true, 0
	case !u.deleting, u.leaving > 0:
		return false, 0
	case u.since < grace:
		return false, grace - u.since
	case u.namespaceGoes:
		return false, grace
	default:
		return true, 0
	}
}
