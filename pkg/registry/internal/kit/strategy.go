package kit

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
)

// strategy implements writes of the main resource of a kind.
//
// It has no declarative validation: none is generated for our kinds, and the library logs an error for every rule of
// its own on metadata that it expects to find in the generated validation, too.
type strategy[T Object] struct {
	runtime.ObjectTyper
	names.NameGenerator

	descriptor *Descriptor[T]
}

var (
	_ rest.RESTCreateStrategy  = strategy[Object]{}
	_ rest.RESTUpdateStrategy  = strategy[Object]{}
	_ rest.RESTDeleteStrategy  = strategy[Object]{}
	_ rest.ResetFieldsStrategy = strategy[Object]{}
)

func newStrategy[T Object](descriptor *Descriptor[T], scheme *runtime.Scheme) strategy[T] {
	return strategy[T]{
		ObjectTyper:   scheme,
		NameGenerator: names.SimpleNameGenerator,
		descriptor:    descriptor,
	}
}

// NamespaceScoped returns true: all kinds are namespaced.
func (strategy[T]) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate returns false: a PUT of a deleted object must not create it again.
func (strategy[T]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate returns false: a PUT needs the resourceVersion that was read.
func (strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return false }

// Canonicalize changes nothing: objects are stored as they were validated.
func (strategy[T]) Canonicalize(runtime.Object) {}

// GetResetFields returns the status: an apply of the main resource owns no field of it.
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// PrepareForCreate drops a status that the client sent, sets the initial one, and completes the creator's field
// ownership.
func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	created := obj.(T)

	s.descriptor.Status.copy(created, s.descriptor.New())
	setInitialStatus(created.GetReconcileStatus(), metav1.Now())
	created.SetGeneration(1)
	s.ownFalse(ctx, created)
	s.record(ctx, created, s.descriptor.New())
}

// record calls the kind's Record, which writes into the status what only the server knows of a write.
func (s strategy[T]) record(ctx context.Context, obj, old T) {
	if s.descriptor.Record == nil {
		return
	}

	name := ""
	if user, known := request.UserFrom(ctx); known {
		name = user.GetName()
	}

	s.descriptor.Record(obj, old, name)
}

// PrepareForUpdate keeps the status, and increases the generation if the spec changed. An equivalent spec that is
// written in another way is stored as it was: otherwise two clients that write the keys of a free-form block in
// different orders would overwrite each other for ever. The store itself increases the generation when a deletion
// begins.
func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	updated, previous := obj.(T), old.(T)

	s.descriptor.Status.copy(updated, previous)
	s.record(ctx, updated, previous)

	if s.specChanged(updated, previous) {
		updated.SetGeneration(previous.GetGeneration() + 1)
	} else {
		s.descriptor.Spec.copy(updated, previous)
	}
}

// Validate runs the kind's rules on a new object.
func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	created := obj.(T)
	errs := append(firstErrors(s.descriptor.Validation.Create(created)), s.specTooLarge(created)...)

	return append(errs, ownedTooDeep(created.GetManagedFields(), nil)...)
}

// ValidateUpdate runs the kind's rules on a change.
func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	updated, previous := obj.(T), old.(T)
	errs := append(firstErrors(s.descriptor.Validation.Update(updated, previous)),
		ownedTooDeep(updated.GetManagedFields(), previous.GetManagedFields())...)

	if newGeneration(updated, previous) {
		errs = append(errs, s.specTooLarge(updated)...)
	}

	return errs
}

// WarningsOnCreate returns the kind's advice.
func (s strategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if s.descriptor.Warnings == nil {
		return nil
	}

	return s.descriptor.Warnings(obj.(T))
}

// WarningsOnUpdate returns the kind's warnings and advice if the spec changed: whoever only adds a finalizer or sets a label need
// not see it again. What a client-side apply loses on its way may leave the spec as it was.
func (s strategy[T]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	updated, previous := obj.(T), old.(T)
	changed := newGeneration(updated, previous)
	applied := updated.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != previous.GetAnnotations()[corev1.LastAppliedConfigAnnotation]

	var warnings []string
	if s.descriptor.UpdateWarnings != nil && (changed || applied) {
		warnings = s.descriptor.UpdateWarnings(updated, previous)
	}

	if !changed {
		return warnings
	}

	return append(warnings, s.WarningsOnCreate(ctx, obj)...)
}

// newGeneration reports whether PrepareForUpdate found a changed spec. Before that the store resets the generation to
// the old one, whatever the client sent, so only a changed spec increases it. Comparing the two numbers saves
// encoding and comparing the specs again.
func newGeneration[T Object](updated, previous T) bool {
	return updated.GetGeneration() != previous.GetGeneration()
}

// specChanged compares the encoded specs, as they would be stored. Two specs with different Go values may have equivalent
// encodings (another order of keys in a free-form block). If those counted as changes, every such write would make a new
// generation. An empty list or map and an unset one differ, as in a custom resource.
func (s strategy[T]) specChanged(obj, old T) bool {
	if s.descriptor.Spec.equal(obj, old) {
		return false
	}

	encoded, err := s.descriptor.Spec.encode(obj)
	if err != nil {
		return true
	}

	previous, err := s.descriptor.Spec.encode(old)

	return err != nil || !bytes.Equal(encoded, previous) && !sameJSON(encoded, previous)
}

// resetFields names the top-level fields that a server-side apply of a resource ignores.
func resetFields(roots ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, root := range roots {
		set.Insert(fieldpath.MakePathOrDie(root))
	}

	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): set,
	}
}

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
