package omnikubeconfigexport

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// removeFormer deletes the Secrets of this export that are not its target any
// more: by their label, because a status may have been lost, and by the status,
// because a cache may be behind.
func (r *reconciler) removeFormer(ctx context.Context, s *scope) error {
	names, err := r.owned(ctx, s.export)
	if err != nil {
		return err
	}

	for _, name := range names {
		if name == s.export.Spec.TargetSecretRef.Name {
			continue
		}

		if err := r.remove(ctx, s, name, "the target is Secret "+s.export.Spec.TargetSecretRef.Name+" now"); err != nil {
			return err
		}
	}

	return nil
}

// owned names the Secrets that may be this export's.
func (r *reconciler) owned(ctx context.Context, export *v1alpha1.OmniKubeconfigExport) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))

	err := r.client.List(ctx, list, client.InNamespace(export.Namespace), client.MatchingFields{index.ByExportUID: string(export.UID)})
	if err != nil {
		return nil, fmt.Errorf("list the Secrets of this export: %w", err)
	}

	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}

	if written := writtenName(export); written != "" {
		names = append(names, written)
	}

	slices.Sort(names)

	return slices.Compact(names), nil
}

// writtenName is the Secret that the status says was written; empty if none was.
func writtenName(export *v1alpha1.OmniKubeconfigExport) string {
	if export.Status.TargetSecretRef == nil {
		return ""
	}

	return export.Status.TargetSecretRef.Name
}

// remove deletes a Secret if it is this export's and still what was looked at.
func (r *reconciler) remove(ctx context.Context, s *scope, name, why string) error {
	export := s.export
	secret := index.SecretMetadata()

	err := r.live.Get(ctx, client.ObjectKey{Namespace: export.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("read the metadata of Secret %q: %w", name, err)
	}

	if !secret.DeletionTimestamp.IsZero() {
		return nil
	}

	if !marked(secret, export.UID, writtenName(export)) {
		r.lost(export, secret)

		return nil
	}

	if hub := secret.Labels[v1alpha1.MarkHub]; !s.hubs.Ours(hub) {
		r.events.Eventf(export, nil, corev1.EventTypeWarning, "SecretLeft", "DeleteSecret", "Secret %q was left behind: %s; its token is valid until %s",
			name, s.hubs.Differ(hub), secret.Annotations[v1alpha1.AnnotationExpirationTime])

		return nil
	}

	if err := r.client.Delete(ctx, secret, exactly(secret)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %q: %w", name, err)
	}

	r.events.Eventf(export, nil, corev1.EventTypeNormal, "SecretDeleted", "DeleteSecret", "Secret %q was deleted: %s", name, why)

	return nil
}

// lost tells of a Secret that this export wrote and that bears no mark any more: it
// stays, with a token that may be valid still. One with another's mark is theirs.
func (r *reconciler) lost(export *v1alpha1.OmniKubeconfigExport, secret client.Object) {
	if secret.GetName() != writtenName(export) || secret.GetLabels()[v1alpha1.LabelExportUID] != "" {
		return
	}

	r.events.Eventf(export, nil, corev1.EventTypeWarning, "SecretLeft", "DeleteSecret",
		"Secret %q was left behind: its label %s was removed; the token that was written to it is valid until %s",
		secret.GetName(), v1alpha1.LabelExportUID, shownUntil(export))
}

// shownUntil is when the token expires that was written last.
func shownUntil(export *v1alpha1.OmniKubeconfigExport) string {
	if export.Status.ExpirationTime == nil {
		return "a time that is not known"
	}

	return shownTime(export.Status.ExpirationTime.Time)
}

// exactly lets a deletion happen only to the very object that was read.
func exactly(object client.Object) client.DeleteOption {
	uid, version := object.GetUID(), object.GetResourceVersion()

	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// delete removes the Secret, or leaves it behind, as the policy says. Omni has
// no part in it: a token ends by itself.
func (r *reconciler) delete(ctx context.Context, s *scope) (loop.Outcome, error) {
	names, err := r.owned(ctx, s.export)
	if err != nil {
		return loop.Outcome{}, err
	}

	if s.hubs, err = r.hubs(ctx, s.export); err != nil {
		return loop.Outcome{}, err
	}

	// Neither the status nor the cache may know yet of a Secret that was just made.
	names = append(names, s.export.Spec.TargetSecretRef.Name)
	slices.Sort(names)

	for _, name := range slices.Compact(names) {
		if s.export.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
			r.reportKept(ctx, s.export, name)

			continue
		}

		if err := r.remove(ctx, s, name, "its OmniKubeconfigExport is being deleted; the token itself stays valid until it expires"); err != nil {
			return loop.Outcome{}, err
		}
	}

	return loop.Continue(v1alpha1.ReasonDeleting, "done"), nil
}

// hubs are those whose marks count as the export's own. Its cluster and connection may be gone.
func (r *reconciler) hubs(ctx context.Context, export *v1alpha1.OmniKubeconfigExport) (hubs.Hubs, error) {
	cluster := &v1alpha1.OmniCluster{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: export.Namespace, Name: export.Spec.ClusterRef.Name}, cluster)
	if apierrors.IsNotFound(err) {
		return hubs.Of(r.options.HubID, nil), nil
	}

	if err != nil {
		return hubs.Hubs{}, fmt.Errorf("read OmniCluster %q: %w", export.Spec.ClusterRef.Name, err)
	}

	return hubs.OfCluster(ctx, r.client, r.options.HubID, cluster)
}

// reportKept tells of a Secret that stays.
func (r *reconciler) reportKept(ctx context.Context, export *v1alpha1.OmniKubeconfigExport, name string) {
	secret := index.SecretMetadata()

	err := r.live.Get(ctx, client.ObjectKey{Namespace: export.Namespace, Name: name}, secret)
	if err != nil {
		return
	}

	if !marked(secret, export.UID, writtenName(export)) {
		r.lost(export, secret)
	} else {
		r.events.Eventf(export, nil, corev1.EventTypeNormal, "SecretLeft", "DeleteSecret",
			"Secret %q was left behind, as spec.deletionPolicy says; its token is valid until %s", name, secret.Annotations[v1alpha1.AnnotationExpirationTime])
	}
}
