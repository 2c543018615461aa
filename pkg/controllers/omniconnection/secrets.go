package omniconnection

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// addSecrets adds the controller that lets Secrets go. It looks at each held Secret itself: a connection may be gone
// before a run of it saw that its Secret was held.
func (r *reconciler) addSecrets(mgr manager.Manager) error {
	held := loop.Holds(r.options.Namespace, v1alpha1.InUseFinalizer)

	return builder.ControllerManagedBy(mgr).
		Named("keysecret").
		WatchesMetadata(index.SecretMetadata(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(held)).
		Watches(&v1alpha1.OmniConnection{}, handler.EnqueueRequestsFromMapFunc(secretOf)).
		Watches(&v1alpha1.OmniCluster{}, handler.EnqueueRequestsFromMapFunc(r.secretOfCluster), builder.WithPredicates(loop.OnlyDeletions())).
		WithOptions(controller.Options{RateLimiter: loop.RateLimiter()}).
		Complete(reconcile.Func(r.releaseSecret))
}

// secretOf returns the Secret with the key of a connection.
func secretOf(_ context.Context, object client.Object) []reconcile.Request {
	connection, ok := object.(*v1alpha1.OmniConnection)
	if !ok {
		return nil
	}

	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: connection.Namespace, Name: connection.Spec.Auth.ServiceAccountSecretRef.Name,
	}}}
}

// secretOfCluster returns the Secret with the key of a cluster's connection. Without the connection there is nothing to
// do: its own end has let the Secret go.
func (r *reconciler) secretOfCluster(ctx context.Context, object client.Object) []reconcile.Request {
	connection := &v1alpha1.OmniConnection{}

	for _, request := range connectionOfCluster(ctx, object) {
		if r.client.Get(ctx, request.NamespacedName, connection) == nil {
			return secretOf(ctx, connection)
		}
	}

	return nil
}

// releaseSecret removes the finalizer from a Secret that is not the key of a connection with users.
func (r *reconciler) releaseSecret(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return sources.ReleaseFinalizer(ctx, r.client, r.live, request.NamespacedName, v1alpha1.InUseFinalizer, r.isNeeded)
}

// isNeeded implements finalizers.Need: it reports whether a Secret is the key of a connection with users.
func (r *reconciler) isNeeded(ctx context.Context, secret *metav1.PartialObjectMetadata) (needed bool, again time.Duration, err error) {
	list := &v1alpha1.OmniConnectionList{}

	err = r.client.List(ctx, list, client.InNamespace(secret.Namespace), client.MatchingFields{index.ByKeySecret: secret.Name})
	if err != nil {
		return false, 0, fmt.Errorf("list the connections with Secret %q: %w", secret.Name, err)
	}

	for i := range list.Items {
		used, err := r.isUsed(ctx, client.ObjectKeyFromObject(&list.Items[i]))
		if err != nil || used {
			return used, 0, err
		}
	}

	return false, 0, nil
}

// holdSecret makes sure that the key's Secret outlives the OmniClusters that need it.
func (r *reconciler) holdSecret(ctx context.Context, connection *v1alpha1.OmniConnection, secret *corev1.Secret) error {
	used, err := r.isUsed(ctx, client.ObjectKeyFromObject(connection))
	if err != nil || !used {
		return err
	}

	// The API server accepts no new finalizer on an object that is being deleted.
	if !secret.DeletionTimestamp.IsZero() {
		return nil
	}

	return r.changeFinalizer(ctx, secret.ObjectMeta, controllerutil.AddFinalizer)
}

// changeFinalizer changes our finalizer on a Secret. One that is gone meanwhile is no error.
func (r *reconciler) changeFinalizer(ctx context.Context, secret metav1.ObjectMeta, how func(client.Object, string) bool) error {
	err := sources.ChangeFinalizer(ctx, r.client, r.live, secret, v1alpha1.InUseFinalizer, how)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change the finalizers of Secret %q: %w", secret.Name, err)
	}

	return nil
}
