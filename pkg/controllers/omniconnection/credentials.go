package omniconnection

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// expiryWarning is how long before its end a key causes a warning.
const expiryWarning = 7 * 24 * time.Hour

// findCredentials reads the key from the API server, so that no cache holds it. Without a usable key there is no
// session: a key that was withdrawn is no longer used.
func (r *reconciler) findCredentials(ctx context.Context, s *scope) (loop.Outcome, error) {
	outcome, err := r.readKey(ctx, s)
	if err == nil && !outcome.Continues() {
		r.options.Pool.Forget(string(s.connection.UID))
	}

	return outcome, err
}

func (r *reconciler) readKey(ctx context.Context, s *scope) (loop.Outcome, error) {
	ref := s.connection.Spec.Auth.ServiceAccountSecretRef
	from := sources.Reference{Namespace: s.connection.Namespace, Name: ref.Name, Key: ref.Key}

	secret, readError := sources.Secret(ctx, r.live, from)
	unread, explained := sources.Outcome(readError, v1alpha1.ReasonSecretNotFound, "")

	if sources.Refused(readError) != nil {
		// A finalizer would disturb the owners of the Secret.
		return unread, r.dropSecret(ctx, secret)
	}

	if err := r.guardSecret(ctx, s); err != nil {
		return loop.Outcome{}, err
	}

	if explained {
		return unread, nil
	}

	if readError != nil {
		return loop.Outcome{}, readError
	}

	value, err := sources.ValueOf(secret, from)
	if missing, done := sources.Outcome(err, v1alpha1.ReasonSecretKeyNotFound, ""); done {
		return missing, nil
	}

	key, err := session.ParseServiceAccountKey(value)
	if err != nil {
		return keyRefused(ref, err), nil
	}

	kept, err := r.warnOfDeletion(ctx, s.connection, secret)
	if err != nil {
		return loop.Outcome{}, err
	}

	expires, _ := key.ExpiresAt()
	s.key, s.secretUID, s.reported = key, secret.UID, &expires

	if key.Expired(r.options.Now()) {
		return loop.Stall(v1alpha1.ReasonKeyExpired, "the key of service account %q in Secret %q expired at %s: create a new one%s",
			key.Name(), ref.Name, shownTime(expires), kept), nil
	}

	outcome, warning := r.judge(s.connection, secret)
	if !outcome.Continues() {
		return outcome, nil
	}

	r.warnOfExpiry(s.connection, key.Name(), expires)

	return loop.Continue(v1alpha1.ReasonKeyFound, "the key of service account %q%s%s%s", key.Name(), shownExpiry(expires), kept, warning), nil
}

// keyRefused returns the outcome for an unusable value. The errors repeat nothing of the value.
func keyRefused(ref v1alpha1.SecretKeyReference, err error) loop.Outcome {
	reason := v1alpha1.ReasonKeyInvalid
	if errors.Is(err, omni.ErrKeyEnvironmentBlock) {
		reason = v1alpha1.ReasonKeyIsEnvironmentBlock
	}

	return loop.Stall(reason, "key %q of Secret %q: %s", ref.Key, ref.Name, omni.Message(err))
}

// warnOfExpiry sends one event for each key that ends soon.
func (r *reconciler) warnOfExpiry(connection *v1alpha1.OmniConnection, account string, expires time.Time) {
	if expires.IsZero() || expires.Sub(r.options.Now()) > expiryWarning {
		return
	}

	r.mu.Lock()
	known := r.warned[connection.UID].Equal(expires)
	r.warned[connection.UID] = expires
	r.mu.Unlock()

	if !known {
		r.events.Eventf(connection, nil, corev1.EventTypeWarning, "KeyExpiresSoon", "CheckKey",
			"the key of service account %q expires at %s: renew it", account, shownTime(expires))
	}
}

// warnOfDeletion returns the warning, and sends one event for each Secret, that a Secret cannot be deleted because
// clusters need it: a user who waits for the deletion, to create it again with another key, would wait for ever. It is
// empty if the Secret is not being deleted.
func (r *reconciler) warnOfDeletion(ctx context.Context, connection *v1alpha1.OmniConnection, secret *corev1.Secret) (string, error) {
	if secret.DeletionTimestamp.IsZero() {
		return "", nil
	}

	users, err := r.users(ctx, client.ObjectKeyFromObject(connection))
	if err != nil || len(users) == 0 {
		return "", err
	}

	text := fmt.Sprintf("Secret %q is being deleted, and kept because %s cannot do without: write the new key into it with kubectl patch, "+
		"or name another Secret in spec.auth.serviceAccountSecretRef", secret.Name, nameSome("OmniCluster", users))

	r.mu.Lock()
	last, told := r.kept[connection.UID]
	r.kept[connection.UID] = secret.UID
	r.mu.Unlock()

	if !told || last != secret.UID {
		r.events.Eventf(connection, nil, corev1.EventTypeWarning, "SecretKept", "CheckKey", "%s", text)
	}

	return "; " + text, nil
}

// guardSecret makes sure that the key's Secret outlives the OmniClusters that need it, and releases Secrets that nobody
// needs any more.
func (r *reconciler) guardSecret(ctx context.Context, s *scope) error {
	used, err := r.isUsed(ctx, client.ObjectKeyFromObject(s.connection))
	if err != nil {
		return err
	}

	if used {
		if err := r.holdSecret(ctx, client.ObjectKey{
			Namespace: s.connection.Namespace, Name: s.connection.Spec.Auth.ServiceAccountSecretRef.Name,
		}); err != nil {
			return err
		}
	}

	return r.releaseSecrets(ctx, s.connection.Namespace)
}

func (r *reconciler) holdSecret(ctx context.Context, name client.ObjectKey) error {
	secret := index.SecretMetadata()

	err := r.client.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("read the metadata of Secret %q: %w", name.Name, err)
	}

	// The API server accepts no new finalizer on an object that is being deleted.
	if !secret.DeletionTimestamp.IsZero() {
		return nil
	}

	return r.patchFinalizer(ctx, secret, controllerutil.AddFinalizer)
}

// dropSecret removes the finalizer from a Secret that may not be used.
func (r *reconciler) dropSecret(ctx context.Context, secret *corev1.Secret) error {
	held := index.SecretMetadata()
	held.ObjectMeta = secret.ObjectMeta

	return r.patchFinalizer(ctx, held, controllerutil.RemoveFinalizer)
}

// releaseSecrets removes the finalizer from every Secret of the namespace that
// is not the key of a connection with users.
func (r *reconciler) releaseSecrets(ctx context.Context, namespace string) error {
	held := &metav1.PartialObjectMetadataList{}
	held.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))

	if err := r.client.List(ctx, held, client.InNamespace(namespace), client.MatchingFields{index.ByInUse: "true"}); err != nil {
		return fmt.Errorf("list the Secrets in use: %w", err)
	}

	for i := range held.Items {
		needed, err := r.isNeeded(ctx, &held.Items[i])
		if err != nil {
			return err
		}

		if needed {
			continue
		}

		if err := r.patchFinalizer(ctx, &held.Items[i], controllerutil.RemoveFinalizer); err != nil {
			return err
		}
	}

	return nil
}

func (r *reconciler) isNeeded(ctx context.Context, secret client.Object) (bool, error) {
	list := &v1alpha1.OmniConnectionList{}

	err := r.client.List(ctx, list, client.InNamespace(secret.GetNamespace()), client.MatchingFields{index.ByKeySecret: secret.GetName()})
	if err != nil {
		return false, fmt.Errorf("list the connections with Secret %q: %w", secret.GetName(), err)
	}

	for i := range list.Items {
		used, err := r.isUsed(ctx, client.ObjectKeyFromObject(&list.Items[i]))
		if err != nil || used {
			return used, err
		}
	}

	return false, nil
}

// patchFinalizer changes the finalizer of a Secret whose content stays unread.
func (r *reconciler) patchFinalizer(
	ctx context.Context, secret *metav1.PartialObjectMetadata, change func(client.Object, string) bool,
) error {
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	base := secret.DeepCopy()
	if !change(secret, v1alpha1.InUseFinalizer) {
		return nil
	}

	err := r.client.Patch(ctx, secret, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change the finalizers of Secret %q: %w", secret.Name, err)
	}

	return nil
}
