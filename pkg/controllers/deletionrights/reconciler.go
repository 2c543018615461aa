// Package deletionrights keeps the rights and the lease of a controller while the one namespace that it serves is being
// deleted.
//
// Both are in that namespace, and Kubernetes deletes everything there at once. Without them nobody could destroy the
// clusters, and the namespace would wait for ever. So a copy of the controller's RoleBinding and the Lease carry
// v1alpha1.InUseFinalizer while anything in the namespace has a finalizer of ours: a RoleBinding that is being deleted still
// counts, and a Lease that is being deleted can still be renewed.
//
// The RoleBinding itself gets no finalizer, because it belongs to the installation. An uninstallation that leaves objects in
// the storage would wait for the finalizer, and the next one would find a RoleBinding that is being deleted.
//
// A controller of all namespaces needs none of this, and takes the place of such controllers. Nobody but it would release what they
// kept, and the copy would give their rights to whoever gets an account of that name. So it releases both as soon as nobody renews the
// lease. It asks for them by name in each namespace in which an object has a finalizer of ours, at its start and when such an object
// comes or goes: there is no watch on all Leases and RoleBindings. A controller of one namespace that keeps nothing does the same when
// nothing there has a finalizer of ours.
package deletionrights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
)

const (
	// lookAgain is the pause after which the RoleBinding and the Lease are looked at without any event: they are not
	// watched, and somebody may have changed them.
	lookAgain = time.Minute
	// shortPause is the pause after somebody else wrote one of them at the same time, and until somebody leads.
	shortPause = time.Second
)

// errNoLease says that nobody has led yet, so the lease will be made.
var errNoLease = errors.New("there is no lease yet")

// Options say what is kept, and where.
type Options struct {
	// Namespace is the one that is served; empty: all, and nothing is kept.
	Namespace string
	// RoleBinding is the name of the one with the rights of a controller of one namespace; empty: nothing is kept.
	RoleBinding string
	// Lease is the name of the lease of a controller.
	Lease string
	// LeaseNamespace is where the lease of this controller is; empty: it has none.
	LeaseNamespace string
	// Skew returns how far the clock of an API server is ahead of ours. Nil: not at all.
	Skew skew.Comparison
}

// CopyName returns the name of the copy of a RoleBinding that is kept.
func CopyName(name string) string { return name + "-deletion" }

// reconciler reads the objects of the namespace from the cache, and the metadata of what it keeps from the API.
type reconciler struct {
	client  client.Client
	live    client.Reader
	options Options

	// told is whether the log has it that something cannot be kept, or released. A controller has one worker here, so there is
	// one run at a time.
	told bool
}

// Add adds the controller to a manager. It works without the lease: the lease may be gone before the RoleBinding is released, and
// nobody can make it anew in a namespace that is being deleted. If there is nothing to keep, it releases what others have kept.
func Add(mgr manager.Manager, options Options) error {
	r := &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: options}
	held := builder.WithPredicates(heldOrReleased(options.Namespace))
	enqueue := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{requestFor(object.GetNamespace())}
	})

	build := builder.ControllerManagedBy(mgr).
		Named("deletionrights").
		WatchesMetadata(index.SecretMetadata(), enqueue, held).
		Watches(&v1alpha1.OmniConnection{}, enqueue, held).
		Watches(&v1alpha1.OmniCluster{}, enqueue, held).
		Watches(&v1alpha1.OmniKubeconfigExport{}, enqueue, held).
		Watches(&v1alpha1.OmniSecretSync{}, enqueue, held).
		Watches(&v1alpha1.OmniHelmRelease{}, enqueue, held)

	if options.Namespace != "" {
		build.WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(requestFor(options.Namespace)) // also if the namespace has become empty while no controller ran

			return nil
		}))
	}

	if options.Namespace == "" || options.RoleBinding == "" {
		return build.WithOptions(controller.Options{RateLimiter: loop.RateLimiter()}).Complete(newReleaser(r))
	}

	return build.WithOptions(controller.Options{RateLimiter: loop.RateLimiter(), NeedLeaderElection: new(false)}).Complete(r)
}

// requestFor returns the request to look at a namespace.
func requestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// lists are those of the kinds whose objects may have a finalizer of ours.
func lists() []client.ObjectList {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(index.SecretMetadata().GroupVersionKind())

	return []client.ObjectList{
		secrets, &v1alpha1.OmniConnectionList{}, &v1alpha1.OmniClusterList{}, &v1alpha1.OmniKubeconfigExportList{},
		&v1alpha1.OmniSecretSyncList{}, &v1alpha1.OmniHelmReleaseList{},
	}
}

// isHeld reports whether an object has a finalizer of ours.
func isHeld(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetFinalizers(), func(finalizer string) bool {
		return slices.Contains([]string{v1alpha1.Finalizer, v1alpha1.InUseFinalizer, v1alpha1.KubeconfigInUseFinalizer}, finalizer)
	})
}

// heldOrReleased accepts what may change whether anything in the namespace is held. Without one it accepts that of all.
func heldOrReleased(namespace string) predicate.Predicate {
	return predicate.And(predicate.NewPredicateFuncs(func(object client.Object) bool { return namespace == "" || object.GetNamespace() == namespace }), predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isHeld(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return isHeld(e.ObjectOld) != isHeld(e.ObjectNew) },
		// What goes with its last finalizer has it in this event.
		DeleteFunc: func(e event.DeleteEvent) bool { return namespace != "" || isHeld(e.Object) },
	})
}

// Reconcile implements reconcile.Reconciler. The copy of the RoleBinding is the last to be released: whoever releases the
// Lease needs its rights. What may not be written is told once, and keeps the other from nothing.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	needed, err := r.isNeeded(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}

	var problems []error

	for _, keep := range []func(context.Context, bool) error{r.keepLease, r.keepBinding} {
		switch err := keep(ctx, needed); {
		// The leader renews its lease every few seconds: nothing to alarm anybody with.
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), errors.Is(err, errNoLease):
			return reconcile.Result{RequeueAfter: shortPause}, nil
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			problems = append(problems, err)
		case err != nil:
			return reconcile.Result{}, err
		}
	}

	if needed {
		r.tell(ctx, errors.Join(problems...))
	}

	return reconcile.Result{RequeueAfter: lookAgain}, nil
}

// isNeeded reports whether anything in the namespace has a finalizer of ours.
func (r *reconciler) isNeeded(ctx context.Context) (bool, error) {
	for _, list := range lists() {
		if err := r.client.List(ctx, list, client.InNamespace(r.options.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("list what the controller has to clean up: %w", err)
		}

		needed := false

		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			needed = needed || err == nil && isHeld(object)

			return err
		}); err != nil || needed {
			return needed, err
		}
	}

	return false, nil
}

// keepLease sets our finalizer on the lease, if that is in the namespace and needed, and removes it otherwise.
func (r *reconciler) keepLease(ctx context.Context, needed bool) error {
	if r.options.LeaseNamespace != r.options.Namespace {
		return nil
	}

	lease := &coordinationv1.Lease{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: r.options.Lease}, lease)

	switch {
	case apierrors.IsNotFound(err) && needed:
		return errNoLease
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Lease %q: %w", r.options.Lease, err)
	case !needed:
		return r.change(ctx, lease, controllerutil.RemoveFinalizer)
	case lease.DeletionTimestamp.IsZero():
		return r.change(ctx, lease, controllerutil.AddFinalizer)
	default: // the API server accepts no new finalizer on an object that is being deleted
		return nil
	}
}

// keepBinding makes the copy of the RoleBinding if that is needed, and deletes it otherwise, or if it is out of date. While
// the namespace is being deleted there is only the copy.
func (r *reconciler) keepBinding(ctx context.Context, needed bool) error {
	found, wanted := &rbacv1.RoleBinding{}, &rbacv1.RoleBinding{}
	key := client.ObjectKey{Namespace: r.options.Namespace, Name: CopyName(r.options.RoleBinding)}

	err := r.live.Get(ctx, key, found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read RoleBinding %q: %w", key.Name, err)
	}

	exists := err == nil

	switch {
	case !needed && exists:
		return r.remove(ctx, found)
	case !needed, exists && !found.DeletionTimestamp.IsZero():
		return nil
	}

	if err := r.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: r.options.RoleBinding}, wanted); err != nil {
		return fmt.Errorf("read RoleBinding %q: %w", r.options.RoleBinding, err)
	}

	if exists && found.RoleRef == wanted.RoleRef && equality.Semantic.DeepEqual(found.Subjects, wanted.Subjects) {
		return r.change(ctx, found, controllerutil.AddFinalizer)
	}

	if exists {
		if err := r.remove(ctx, found); err != nil {
			return err
		}
	}

	return r.create(ctx, key, wanted)
}

// create makes the copy of a RoleBinding, with our finalizer.
func (r *reconciler) create(ctx context.Context, key client.ObjectKey, original *rbacv1.RoleBinding) error {
	made := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{v1alpha1.InUseFinalizer}},
		RoleRef:    original.RoleRef, Subjects: original.Subjects,
	}

	if err := r.client.Create(ctx, made); err != nil {
		return fmt.Errorf("create RoleBinding %q: %w", key.Name, err)
	}

	return nil
}

// remove deletes a copy. The finalizer goes first: without the copy there may be no right to remove it.
func (r *reconciler) remove(ctx context.Context, binding *rbacv1.RoleBinding) error {
	if err := r.change(ctx, binding, controllerutil.RemoveFinalizer); client.IgnoreNotFound(err) != nil || !binding.DeletionTimestamp.IsZero() {
		return client.IgnoreNotFound(err)
	}

	if err := r.client.Delete(ctx, binding, client.Preconditions{UID: &binding.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete RoleBinding %q: %w", binding.Name, err)
	}

	return nil
}

// change changes our finalizer on an object that was just read.
func (r *reconciler) change(ctx context.Context, object client.Object, how func(client.Object, string) bool) error {
	base, ok := object.DeepCopyObject().(client.Object)
	if !ok || !how(object, v1alpha1.InUseFinalizer) {
		return nil
	}

	if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("change the finalizers of %T %q: %w", base, base.GetName(), err)
	}

	return nil
}

// tell logs once why something cannot be kept, until all of it can be.
func (r *reconciler) tell(ctx context.Context, err error) {
	if err != nil && !r.told {
		log.FromContext(ctx).Error(err, "If the namespace were deleted now, this controller would lose its rights or its lease before it has cleaned up")
	}

	r.told = err != nil
}
