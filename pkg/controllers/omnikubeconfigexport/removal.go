package omnikubeconfigexport

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// removeFormer deletes the Secrets of this export that are no longer its target, unless the policy leaves them: by their label,
// because a status may have been lost, and by the status, because a cache may be behind.
func (r *reconciler) removeFormer(ctx context.Context, s *scope) (loop.Outcome, error) {
	owned, err := r.owned(ctx, s.export)
	if err != nil {
		return loop.Outcome{}, err
	}

	target := s.export.EffectiveTarget()

	for _, secret := range owned {
		if secret == target {
			continue
		}

		if s.export.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
			// Its label stays, so that it is found in every run.
			if secret == s.export.WrittenTarget() {
				r.reportKept(ctx, s.export, secret)
			}

			continue
		}

		outcome, err := r.remove(ctx, s, secret, "the target is Secret "+shownTarget(s.export, target)+" now")
		if err != nil || !outcome.Continues() {
			return outcome, err
		}
	}

	return loop.Proceed(), nil
}

// owned returns the Secrets that may belong to this export.
func (r *reconciler) owned(ctx context.Context, export *v1alpha1.OmniKubeconfigExport) ([]types.NamespacedName, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))

	err := r.client.List(ctx, list, client.MatchingFields{index.ByExportUID: string(export.UID)})
	if err != nil {
		return nil, fmt.Errorf("list the Secrets of this export: %w", err)
	}

	var owned []types.NamespacedName

	for i := range list.Items {
		// A Secret in a namespace that is not for exports is a copy.
		if r.serves(export, list.Items[i].Namespace) {
			owned = append(owned, keyOf(&list.Items[i]))
		}
	}

	if written := export.WrittenTarget(); written.Name != "" {
		owned = append(owned, written)
	}

	return inOrder(owned), nil
}

// inOrder sorts names and removes duplicates.
func inOrder(names []types.NamespacedName) []types.NamespacedName {
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })

	return slices.Compact(names)
}

// remove deletes a Secret if it belongs to this export and is still the one that was read.
func (r *reconciler) remove(ctx context.Context, s *scope, key types.NamespacedName, why string) (loop.Outcome, error) {
	export, name := s.export, shownTarget(s.export, key)
	done := loop.Proceed()

	if !r.serves(export, key.Namespace) {
		return r.outOfReach(export, key), nil
	}

	secret := index.SecretMetadata()

	err := r.live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return done, nil
	}

	if err != nil {
		return loop.Outcome{}, fmt.Errorf("read the metadata of Secret %q: %w", name, err)
	}

	if !secret.DeletionTimestamp.IsZero() {
		return done, nil
	}

	if !carriesMark(secret, export) {
		r.lost(export, secret)

		return done, nil
	}

	if hub := secret.Labels[v1alpha1.MarkHub]; !s.hubs.Ours(hub) {
		r.events.Eventf(export, nil, corev1.EventTypeWarning, "SecretLeft", "DeleteSecret", "Secret %q was left behind: %s; its token is valid until %s",
			name, s.hubs.Differ(hub), secret.Annotations[v1alpha1.AnnotationExpirationTime])

		return done, nil
	}

	if err := r.client.Delete(ctx, secret, exactly(secret)); client.IgnoreNotFound(err) != nil {
		// An admission webhook that refuses a deletion may quote the Secret.
		return loop.Outcome{}, fmt.Errorf("delete Secret %q: %w", name, redact.Of().Error(err))
	}

	r.events.Eventf(export, nil, corev1.EventTypeNormal, "SecretDeleted", "DeleteSecret", "Secret %q was deleted: %s", name, why)

	return done, nil
}

// outOfReach handles a Secret in a namespace that was removed from --export-namespaces. A Secret that was never written
// there does not matter.
func (r *reconciler) outOfReach(export *v1alpha1.OmniKubeconfigExport, secret types.NamespacedName) loop.Outcome {
	if secret != export.WrittenTarget() {
		return loop.Proceed()
	}

	return loop.Stall(v1alpha1.ReasonNamespaceNotAllowed,
		"Secret %q is to be deleted, and its namespace is not one of --export-namespaces (controller.exportNamespaces in the chart) any more: "+
			"add it there, or delete this object with spec.deletionPolicy: Orphan, which leaves the Secret", secret)
}

// lost announces a Secret that this export wrote and that has no mark any more: it stays, with a token that may still
// be valid. A Secret with another's mark belongs to them.
func (r *reconciler) lost(export *v1alpha1.OmniKubeconfigExport, secret client.Object) {
	if keyOf(secret) != export.WrittenTarget() || secret.GetLabels()[v1alpha1.LabelExportUID] != "" {
		return
	}

	r.events.Eventf(export, nil, corev1.EventTypeWarning, "SecretLeft", "DeleteSecret",
		"Secret %q was left behind: its label %s was removed; the token that was written to it is valid until %s",
		shownTarget(export, keyOf(secret)), v1alpha1.LabelExportUID, shownUntil(export))
}

// shownUntil returns when the last written token expires.
func shownUntil(export *v1alpha1.OmniKubeconfigExport) string {
	if export.Status.ExpirationTime == nil {
		return "a time that is not known"
	}

	return words.Time(export.Status.ExpirationTime.Time)
}

// exactly limits a deletion to the very object that was read.
func exactly(object client.Object) client.DeleteOption {
	uid, version := object.GetUID(), object.GetResourceVersion()

	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// delete removes the Secret, or leaves it, as the policy says. It does not call Omni: a token ends by itself.
func (r *reconciler) delete(ctx context.Context, s *scope) (loop.Outcome, error) {
	owned, err := r.owned(ctx, s.export)
	if err != nil {
		return loop.Outcome{}, err
	}

	if s.hubs, err = r.hubs(ctx, s.export); err != nil {
		return loop.Outcome{}, err
	}

	// Neither the status nor the cache may have a Secret that was just created.
	for _, secret := range inOrder(append(owned, s.export.EffectiveTarget())) {
		if s.export.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
			r.reportKept(ctx, s.export, secret)

			continue
		}

		outcome, err := r.remove(ctx, s, secret, "its OmniKubeconfigExport is being deleted; the token itself stays valid until it expires")
		if err != nil || !outcome.Continues() {
			return outcome, err
		}
	}

	return loop.Continue(v1alpha1.ReasonDeleting, "done"), nil
}

// hubs returns the hubs whose marks count as the export's own. Its cluster and connection may be gone.
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

// reportKept announces a Secret that stays.
func (r *reconciler) reportKept(ctx context.Context, export *v1alpha1.OmniKubeconfigExport, key types.NamespacedName) {
	secret := index.SecretMetadata()

	if err := r.live.Get(ctx, key, secret); err != nil {
		return
	}

	if !carriesMark(secret, export) {
		r.lost(export, secret)
	} else {
		r.events.Eventf(export, nil, corev1.EventTypeNormal, "SecretLeft", "DeleteSecret",
			"Secret %q was left behind, as spec.deletionPolicy says; its token is valid until %s", shownTarget(export, key), secret.Annotations[v1alpha1.AnnotationExpirationTime])
	}
}
