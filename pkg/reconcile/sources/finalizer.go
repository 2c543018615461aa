package sources

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		return err // the callers wrap it
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
