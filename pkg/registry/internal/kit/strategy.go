package kit

import (
	"bytes"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// strategy is how the main resource of a kind is written.
//
// It has no declarative validation: none is generated for our kinds, and the library logs an error for every rule of its
// own on metadata that it expects there, too.
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

// NamespaceScoped is true: all kinds are namespaced.
func (strategy[T]) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is false: a PUT of a deleted object must not bring it back.
func (strategy[T]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: a PUT needs the resourceVersion that was read.
func (strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return false }

// Canonicalize changes nothing: objects are stored as they were validated.
func (strategy[T]) Canonicalize(runtime.Object) {}

// GetResetFields says that an apply of the main resource owns no field of the status.
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// PrepareForCreate drops a status that the client sent and sets the initial one, and completes what the creator owns.
func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	created := obj.(T)

	s.descriptor.Status.copy(created, s.descriptor.New())
	setInitialStatus(created.GetReconcileStatus(), metav1.Now())
	created.SetGeneration(1)
	s.ownFalse(ctx, created)
	s.record(ctx, created, s.descriptor.New())
}

// record has the kind write into the status what only the server knows of a write.
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

// PrepareForUpdate keeps the status and counts a changed spec as a new generation. A spec that says the same in another
// way is stored as it was: clients that write free-form blocks in different orders would else take turns in writing. The
// store itself adds the generation that begins a deletion.
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
	return append(firstErrors(s.descriptor.Validation.Create(obj.(T))), s.specTooLarge(obj.(T))...)
}

// ValidateUpdate runs the kind's rules on a change.
func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	updated, previous := obj.(T), old.(T)
	errs := firstErrors(s.descriptor.Validation.Update(updated, previous))

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

// WarningsOnUpdate returns the kind's advice if the spec changed: a controller that adds a finalizer
// or a user who sets a label has heard it before.
func (s strategy[T]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if !newGeneration(obj.(T), old.(T)) {
		return nil
	}

	return s.WarningsOnCreate(ctx, obj)
}

// newGeneration reports whether PrepareForUpdate found a changed spec. The store puts the old generation
// back before, whatever the client sent, so that only a changed spec makes a new one; comparing numbers
// spares comparing the encoded specs again.
func newGeneration[T Object](updated, previous T) bool {
	return updated.GetGeneration() != previous.GetGeneration()
}

// specChanged compares what would be stored. Two specs whose Go values differ may have one encoding
// (an empty list of a field that omits empty lists), or encodings that say the same (another order of
// keys in a free-form block); counting that as a change would make a new generation of every such write.
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

// resetFields names the top-level fields that a resource ignores in a server-side apply.
func resetFields(roots ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, root := range roots {
		set.Insert(fieldpath.MakePathOrDie(root))
	}

	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): set,
	}
}
