package sources

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// ChangeFinalizer adds a finalizer to a Secret, or removes it, in the version that was read; its content stays unread.
// how is AddFinalizer or RemoveFinalizer of package controllerutil. It returns the API's own errors.
func ChangeFinalizer(
	ctx context.Context, c client.Client, secret metav1.ObjectMeta, finalizer string, how func(client.Object, string) bool,
) error {
	changed := index.SecretMetadata()
	changed.ObjectMeta = *secret.DeepCopy()

	base := changed.DeepCopy()
	if !how(changed, finalizer) {
		return nil
	}

	return c.Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})) // the callers wrap it
}
