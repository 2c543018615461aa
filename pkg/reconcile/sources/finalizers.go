package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// ChangeFinalizer adds a finalizer to a Secret, or removes it, in the version that the caller decided by, which may be a
// cached one; its content stays unread. how is AddFinalizer or RemoveFinalizer of package controllerutil. It returns
// the API's own errors, without what looks like a key or a token: a conflict if the Secret has changed since.
//
// A patch of finalizers writes all of them, and the cache has only our own (index.KeepNeeded): so those to be written are
// read from the API.
func ChangeFinalizer(
	ctx context.Context, c client.Client, live client.Reader, decidedBy metav1.ObjectMeta, finalizer string, how func(client.Object, string) bool,
) error {
	if !how(&metav1.PartialObjectMetadata{ObjectMeta: *decidedBy.DeepCopy()}, finalizer) {
		return nil
	}

	changed := index.SecretMetadata()
	if err := live.Get(ctx, client.ObjectKey{Namespace: decidedBy.Namespace, Name: decidedBy.Name}, changed); err != nil {
		return err
	}

	if changed.UID != decidedBy.UID || changed.ResourceVersion != decidedBy.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("secrets"), decidedBy.Name, errors.New("it has changed since it was read"))
	}

	base := changed.DeepCopy()
	how(changed, finalizer)

	err := c.Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))

	// An admission webhook that refuses a change of a Secret may quote it. The callers wrap the error.
	return redact.Of().Error(err)
}

// NeedFinalizer reports whether somebody needs a Secret, of which it gets the metadata in the cache; and if so, when to ask again (0: when
// something changes).
type NeedFinalizer func(ctx context.Context, secret *metav1.PartialObjectMetadata) (needed bool, again time.Duration, err error)

// ReleaseFinalizer is the run of a controller that takes a finalizer off a Secret that nobody needs any more.
func ReleaseFinalizer(ctx context.Context, c client.Client, live client.Reader, name types.NamespacedName, finalizer string, need NeedFinalizer) (reconcile.Result, error) {
	secret := index.SecretMetadata()

	err := c.Get(ctx, name, secret)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read the metadata of Secret %q: %w", name.Name, err)
	}

	if err != nil || !controllerutil.ContainsFinalizer(secret, finalizer) {
		return reconcile.Result{}, nil
	}

	if needed, again, err := need(ctx, secret); err != nil || needed {
		return reconcile.Result{RequeueAfter: again}, err
	}

	err = ChangeFinalizer(ctx, c, live, secret.ObjectMeta, finalizer, controllerutil.RemoveFinalizer)
	if apierrors.IsConflict(err) { // somebody wrote it at the same time: nothing to alarm anybody with
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}

	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("let go of Secret %q: %w", name.Name, err)
	}

	return reconcile.Result{}, nil
}
