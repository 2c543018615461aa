package omniconnection

import (
	"context"
	"errors"
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
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
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

// readKey reads the key, and decides whether it may be used now and with this Omni.
func (r *reconciler) readKey(ctx context.Context, s *scope) (loop.Outcome, error) {
	secret, key, outcome, err := r.readSecret(ctx, s.connection)
	if err != nil || !outcome.Continues() {
		return outcome, err
	}

	kept, err := r.warnOfDeletion(ctx, s.connection, secret)
	if err != nil {
		return loop.Outcome{}, err
	}

	expires, _ := key.ExpiresAt()
	s.key, s.secretUID, s.reported = key, secret.UID, &expires
	r.options.Objects.SetRenewal(client.ObjectKeyFromObject(s.connection), renewal(key.BeginsAt(), expires))

	if outcome := r.judgeLifetime(key, secret.Name, kept); !outcome.Continues() {
		return outcome, nil
	}

	outcome, warning := r.judge(s.connection, secret)
	if !outcome.Continues() {
		return outcome, nil
	}

	r.warnOfExpiry(s.connection, key.Name(), expires)

	return loop.Continue(v1alpha1.ReasonKeyFound, "the key of service account %q%s%s%s", key.Name(), shownExpiry(expires), kept, warning), nil
}

// renewal is when a key should be renewed: soon before its end, but not so soon that one with a short life always should. It
// is zero if the key does not expire.
func renewal(begins, expires time.Time) time.Time {
	if expires.IsZero() {
		return time.Time{}
	}

	return expires.Add(-min(expiryWarning, expires.Sub(begins)/3))
}

// readSecret reads the Secret with the key, and holds it for the clusters that need it.
func (r *reconciler) readSecret(ctx context.Context, connection *v1alpha1.OmniConnection) (*corev1.Secret, session.Key, loop.Outcome, error) {
	ref := connection.Spec.Auth.ServiceAccountSecretRef
	from := sources.Reference{Namespace: connection.Namespace, Name: ref.Name, Key: ref.Key}

	secret, err := sources.Secret(ctx, r.live, from)
	outcome, explained := sources.Outcome(err, v1alpha1.ReasonSecretNotFound, "")

	switch {
	case sources.Refused(err) != nil:
		// A finalizer would disturb the owners of the Secret.
		return nil, session.Key{}, outcome, r.changeFinalizer(ctx, secret.ObjectMeta, controllerutil.RemoveFinalizer)
	case explained:
		return nil, session.Key{}, outcome, nil
	case err != nil:
		return nil, session.Key{}, loop.Outcome{}, err
	}

	value, err := sources.ValueOf(secret, from)
	if outcome, missing := sources.Outcome(err, v1alpha1.ReasonSecretKeyNotFound, ""); missing {
		return nil, session.Key{}, outcome, nil
	}

	key, err := session.ParseServiceAccountKey(value)
	if err != nil {
		return nil, session.Key{}, keyRefused(ref, err), nil
	}

	// Only a Secret that holds a key: who names another must not keep its owners from deleting it. One that is held stays
	// so with a bad value, which is corrected sooner or later.
	if err := r.holdSecret(ctx, connection, secret); err != nil {
		return nil, session.Key{}, loop.Outcome{}, err
	}

	return secret, key, loop.Proceed(), nil
}

// judgeLifetime reports whether a key is valid now; kept is the warning about its Secret. An open session goes on if only our clock
// says that the key has expired, and another clock differs: Omni decides by its own.
func (r *reconciler) judgeLifetime(key session.Key, secret, kept string) loop.Outcome {
	now := r.options.Now()

	if key.Expired(r.options.Skew.Now().Earliest(now)) {
		expired, _ := key.ExpiresAt()

		return loop.Stall(v1alpha1.ReasonKeyExpired, "the key of service account %q in Secret %q expired at %s: create a new one%s",
			key.Name(), secret, words.Time(expired), kept)
	}

	// No present time in the message: it would be written anew in every run.
	if begins := key.BeginsAt(); key.NotYetValid(now) {
		return loop.Wait(begins.Sub(now), v1alpha1.ReasonClockSkew, "the key of service account %q in Secret %q is valid from %s only, and by the clock of omni-controller "+
			"that is still to come: it is used then. If that is not in a moment, mend the clock that is wrong: that of omni-controller's node, or of the computer where the key was made%s",
			key.Name(), secret, words.Time(begins), kept)
	}

	return loop.Proceed()
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
			"the key of service account %q expires at %s: renew it", account, words.Time(expires))
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

// isNeeded implements sources.NeedFinalizer: it reports whether a Secret is the key of a connection with users.
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
