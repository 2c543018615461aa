package validation

import (
	"reflect"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// change is an update of one object, as validateUpdate needs it.
type change struct {
	// meta and oldMeta are the metadata after and before.
	meta, oldMeta *metav1.ObjectMeta
	// spec and oldSpec are pointers to the specs after and before.
	spec, oldSpec any
	// always holds the errors of the rules that no update escapes: immutability and the like.
	always field.ErrorList
	// rules computes the errors of the other spec rules.
	rules func() field.ErrorList
}

// validateMeta checks the metadata of a new object.
func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// validateUpdate applies the rules that an update has to pass. A rule that was tightened after an
// object was stored must never hold up its finalizers or labels, so the spec rules run only if the
// spec changed, and not at all while the object is being deleted.
func validateUpdate(c change) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(c.meta, c.oldMeta, field.NewPath("metadata"))
	errs = append(errs, c.always...)

	// Strict comparison: unset and empty lists are different specs.
	if c.oldMeta.DeletionTimestamp == nil && !reflect.DeepEqual(c.spec, c.oldSpec) {
		errs = append(errs, c.rules()...)
	}

	return errs
}

// immutable refuses a new value of a field that cannot be changed. remedy completes the sentence
// "field is immutable: ...".
func immutable[T any](value, old T, path *field.Path, remedy string) field.ErrorList {
	if reflect.DeepEqual(value, old) {
		return nil
	}

	return field.ErrorList{field.Invalid(path, value, "field is immutable: "+remedy)}
}
