package clusteraccess

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// refuse turns away a Secret that may not be used, and lets go of it: a finalizer on
// it gets in the way of those who made it, and one that is there was put there by
// mistake, or before it was protected. It returns why, or an error of the management
// cluster.
func (d *Access) refuse(ctx context.Context, secret *corev1.Secret, why error) error {
	d.Clusters.Forget(client.ObjectKeyFromObject(secret))

	if err := d.change(ctx, secret, controllerutil.RemoveFinalizer); err != nil {
		return fmt.Errorf("let go of Secret %q: %w", secret.Name, err)
	}

	return why
}

// hold makes sure that the Secret outlives the objects that have to clean up with it.
func (d *Access) hold(ctx context.Context, secret *corev1.Secret) error {
	if !secret.DeletionTimestamp.IsZero() {
		return nil
	}

	if err := d.change(ctx, secret, controllerutil.AddFinalizer); err != nil {
		return fmt.Errorf("hold Secret %q: %w", secret.Name, err)
	}

	return nil
}

// change adds or removes the finalizer of the Secret as it was read.
func (d *Access) change(ctx context.Context, secret *corev1.Secret, how func(client.Object, string) bool) error {
	changed := index.SecretMetadata()
	changed.ObjectMeta = *secret.ObjectMeta.DeepCopy()

	base := changed.DeepCopy()
	if !how(changed, v1alpha1.KubeconfigInUseFinalizer) {
		return nil
	}

	return d.Client.Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})) // the callers do
}
