package kit

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// guard refuses deletions.
type guard func(context.Context, runtime.Object, *metav1.DeleteOptions) error

// guardOf returns the guard of a kind. It allows objects that are being deleted already: a finalizer holds them, and refusing a
// second DELETE would help nobody.
func guardOf[T Object](d *Descriptor[T]) guard {
	return func(ctx context.Context, obj runtime.Object, options *metav1.DeleteOptions) error {
		object, ok := obj.(T)
		if !ok || object.GetDeletionTimestamp() != nil {
			return nil
		}

		if d.DeleteGuard != nil {
			if err := d.DeleteGuard(ctx, object); err != nil {
				return err
			}
		}

		if d.KeepInstead != nil && orphans(options) && object.GetAnnotations()[v1alpha1.AnnotationConfirmDeletion] != object.GetName() {
			return refuseOrphan(d.Plural, object.GetName(), d.KeepInstead(object))
		}

		return nil
	}
}

// orphans reports whether a deletion asks to keep what the object owns.
func orphans(options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}

	return options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationOrphan ||
		options.OrphanDependents != nil && *options.OrphanDependents //nolint:staticcheck // clients still send it
}

// refuseOrphan refuses a deletion with the policy Orphan, which keeps nothing but objects with an ownerReference, if something
// remote would go with the object. Whoever writes orphan there means to keep it.
func refuseOrphan(plural, name, instead string) error {
	if instead == "" {
		return nil
	}

	return apierrors.NewForbidden(v1alpha1.Resource(plural), name, fmt.Errorf(
		"propagationPolicy Orphan (kubectl --cascade=orphan, Argo CD's non-cascading deletion) keeps objects of this hub only: %s. To delete it all the same, "+
			"annotate it with %s=%s first", instead, v1alpha1.AnnotationConfirmDeletion, name))
}
