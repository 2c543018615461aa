package kit

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
)

// statusStrategy implements writes of the status subresource of a kind.
type statusStrategy[T Object] struct{ strategy[T] }

// GetResetFields returns everything but the status: an apply of the status owns nothing else.
func (s statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("metadata", "spec")
}

// PrepareForUpdate keeps everything but the status. A status without Ready gets the initial conditions: tools that
// know kstatus take an object without conditions for a finished one.
func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, previous := obj.(T), old.(T)

	s.descriptor.Spec.copy(updated, previous)
	metav1.ResetObjectMetaForStatus(updated, previous)

	if s.descriptor.Kept != nil {
		s.descriptor.Kept(updated, previous)
	}

	if status := updated.GetReconcileStatus(); meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady) == nil {
		setInitialStatus(status, metav1.Now())
	}
}

// ValidateUpdate runs the kind's rules on a status. Of the metadata, a write of the status changes the managedFields.
func (s statusStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	updated, previous := obj.(T), old.(T)

	validate := s.descriptor.Validation.StatusUpdate
	if validate == nil {
		validate = validation.ValidateStatusUpdate[T]
	}

	return append(firstErrors(validate(updated, previous)),
		ownedTooDeep(updated.GetManagedFields(), previous.GetManagedFields())...)
}

// WarningsOnUpdate is empty: advice on a spec is for those who write specs.
func (statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
