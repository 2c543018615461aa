package omnisecretsync

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
)

// read reads a Secret of the workload cluster.
func read(ctx context.Context, cluster *clusteraccess.Cluster, where location) (*corev1.Secret, error) {
	return clusteraccess.Read(ctx, cluster, func(ctx context.Context) (*corev1.Secret, error) {
		return cluster.Core().Secrets(where.namespace).Get(ctx, where.name, metav1.GetOptions{})
	})
}

// namespaceGone reports whether the cluster says that a namespace does not exist. The rights that a Role gave in it went with it, and
// RBAC refuses who reads there before anything is looked for. Who may not read the namespace itself is not told either.
func namespaceGone(ctx context.Context, cluster *clusteraccess.Cluster, name string) bool {
	_, err := clusteraccess.Read(ctx, cluster, func(ctx context.Context) (*corev1.Namespace, error) {
		return cluster.Core().Namespaces().Get(ctx, name, metav1.GetOptions{})
	})

	return clusteraccess.NotFound(err)
}

// change makes a write for a Secret. If the write does not end, it makes a dry run with an empty Secret of that name,
// which passes the webhooks and changes nothing, to find out why.
func change[T any](ctx context.Context, cluster *clusteraccess.Cluster, where location, write func(context.Context) (T, error)) (T, error) {
	return clusteraccess.Write(ctx, cluster, write, func(ctx context.Context) {
		empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: where.namespace, Name: where.name}}
		_, _ = cluster.Core().Secrets(where.namespace).Create(ctx, empty, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	})
}

// update writes a Secret that was read.
func update(ctx context.Context, cluster *clusteraccess.Cluster, where location, secret *corev1.Secret) (*corev1.Secret, error) {
	return change(ctx, cluster, where, func(ctx context.Context) (*corev1.Secret, error) {
		return cluster.Core().Secrets(where.namespace).Update(ctx, secret, metav1.UpdateOptions{})
	})
}

// deleteExactly deletes the Secret that was read, and no other of the same name. It is no error if the Secret is gone.
func deleteExactly(ctx context.Context, cluster *clusteraccess.Cluster, where location, live *corev1.Secret) error {
	exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}}

	_, err := change(ctx, cluster, where, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, cluster.Core().Secrets(where.namespace).Delete(ctx, where.name, exactly)
	})
	if clusteraccess.NotFound(err) {
		return nil
	}

	return err
}

// wouldTake asks by a dry run whether the cluster would take the Secret in the place of the one that is there: what it refuses
// must not cost the one that it has.
func wouldTake(ctx context.Context, s *scope, wanted location) error {
	_, err := createSecret(ctx, s, wanted, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsAlreadyExists(err) {
		return nil // the last that a create looks at
	}

	return err
}

func createSecret(ctx context.Context, s *scope, wanted location, options metav1.CreateOptions) (*corev1.Secret, error) {
	cluster := s.opened.Cluster
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.namespace, Name: wanted.name}}
	s.want.fill(secret)

	return change(ctx, cluster, wanted, func(ctx context.Context) (*corev1.Secret, error) {
		return cluster.Core().Secrets(wanted.namespace).Create(ctx, secret, options)
	})
}

// create creates the Secret, and its namespace if the spec asks for that and it does not exist.
func (r *reconciler) create(ctx context.Context, s *scope, wanted location) error {
	_, err := createSecret(ctx, s, wanted, metav1.CreateOptions{})
	if !clusteraccess.NotFound(err) || !s.sync.Spec.CreateNamespace {
		return wrap(err, "create Secret %s", wanted)
	}

	if err := r.createNamespace(ctx, s, wanted); err != nil {
		return wrap(err, "create namespace %s", wanted.namespace)
	}

	_, err = createSecret(ctx, s, wanted, metav1.CreateOptions{})

	return wrap(err, "create Secret %s", wanted)
}

// createNamespace creates the namespace of the Secret, unless it exists by now.
func (r *reconciler) createNamespace(ctx context.Context, s *scope, wanted location) error {
	cluster := s.opened.Cluster
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: wanted.namespace, Labels: map[string]string{labelManagedBy: managedBy},
	}}

	_, err := change(ctx, cluster, wanted, func(ctx context.Context) (*corev1.Namespace, error) {
		return cluster.Core().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}

	if err == nil {
		r.events.Eventf(s.sync, nil, corev1.EventTypeNormal, "NamespaceCreated", "CreateNamespace",
			"Created namespace %s in the workload cluster; it stays when this object is deleted", wanted.namespace)
	}

	return err
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf(format+": %w", append(args, err)...)
}

// location is the place of a Secret.
type location struct{ namespace, name string }

func (l location) String() string { return l.namespace + "/" + l.name }

// wantedLocation returns where the spec wants the Secret. writtenLocation returns where the status records that one was
// written; the zero location if none was.
func wantedLocation(sync *v1alpha1.OmniSecretSync) location {
	return location{namespace: sync.Spec.TargetSecretRef.Namespace, name: sync.Spec.TargetSecretRef.Name}
}

func writtenLocation(sync *v1alpha1.OmniSecretSync) location {
	if sync.Status.Target == nil {
		return location{}
	}

	return locationOf(*sync.Status.Target)
}

func locationOf(secret v1alpha1.SyncedSecret) location {
	return location{namespace: secret.Namespace, name: secret.Name}
}

// confirmed reports whether a write of a Secret there is known to have succeeded.
func confirmed(sync *v1alpha1.OmniSecretSync, where location) bool {
	return slices.ContainsFunc(knownSecrets(sync), func(known v1alpha1.SyncedSecret) bool {
		return locationOf(known) == where && known.Hash != ""
	})
}

// mostPending is how many locations the status records besides the target.
const mostPending = 8

// pendingLocations returns where a Secret may be besides the written location, oldest first.
func pendingLocations(sync *v1alpha1.OmniSecretSync) []location {
	var locations []location
	for _, pending := range sync.Status.PendingTargets {
		locations = append(locations, locationOf(pending))
	}

	return locations
}

// knownSecrets returns what the status records of all Secrets that this object may have, the target last.
func knownSecrets(sync *v1alpha1.OmniSecretSync) []v1alpha1.SyncedSecret {
	known := slices.Clone(sync.Status.PendingTargets)
	if written := writtenLocation(sync); written != (location{}) && !slices.Contains(pendingLocations(sync), written) {
		known = append(known, *sync.Status.Target)
	}

	return known
}

// knownLocations returns all locations at which this object may have a Secret.
func knownLocations(sync *v1alpha1.OmniSecretSync) []location {
	var locations []location
	for _, known := range knownSecrets(sync) {
		locations = append(locations, locationOf(known))
	}

	return locations
}
