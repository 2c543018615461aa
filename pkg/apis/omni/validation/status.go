package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// notObserved is the observedGeneration of an object that no controller has processed.
const notObserved = -1

// ValidateStatusUpdate applies the rules that every kind's status has to meet.
func ValidateStatusUpdate[T interface {
	metav1.Object
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}](obj, old T) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(obj, old, field.NewPath("metadata"))
	path, status, generation := field.NewPath("status"), obj.GetReconcileStatus(), obj.GetGeneration()
	errs = append(errs, validateObservedGeneration(status.ObservedGeneration, generation, notObserved, path)...)

	for _, err := range metav1validation.ValidateConditions(status.Conditions, path.Child("conditions")) {
		// The library marks rules that it also generates from tags. Our types have no such tags, and because of the
		// mark the library would log each of these errors as an error of the server.
		err.CoveredByDeclarative = false
		errs = append(errs, err)
	}

	for i := range status.Conditions {
		observed := status.Conditions[i].ObservedGeneration
		at := path.Child("conditions").Index(i)

		// ValidateConditions has already refused a negative one.
		if observed > generation {
			errs = append(errs, validateObservedGeneration(observed, generation, 0, at)...)
		}
	}

	return errs
}

func validateObservedGeneration(observed, generation, lowest int64, parent *field.Path) field.ErrorList {
	if observed >= lowest && observed <= generation {
		return nil
	}

	return field.ErrorList{field.Invalid(parent.Child("observedGeneration"), observed,
		fmt.Sprintf("must be from %d to metadata.generation (%d)", lowest, generation))}
}

// validateUniqueKeys refuses two elements of a status list with the same map key: with such a list, every later
// server-side apply of the object would fail.
func validateUniqueKeys[T any, K comparable](list []T, key func(T) K, path *field.Path, keyField string) field.ErrorList {
	var errs field.ErrorList

	seen := make(map[K]bool, len(list))

	for i := range list {
		value := key(list[i])
		if seen[value] {
			errs = append(errs, field.Duplicate(path.Index(i).Child(keyField), value))
		}

		seen[value] = true
	}

	return errs
}
