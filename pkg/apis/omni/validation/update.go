package validation

import (
	"reflect"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// change is an update of one object: the input of validateUpdate.
type change struct {
	// meta and oldMeta are the metadata after and before.
	meta, oldMeta *metav1.ObjectMeta
	// spec and oldSpec are pointers to the specs after and before.
	spec, oldSpec any
	// always holds the errors of rules that apply to every update, such as immutability.
	always field.ErrorList
	// rules computes the errors of the other spec rules.
	rules func() field.ErrorList
}

// validateMeta checks the metadata of a new object.
func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// validateUpdate applies the rules for updates. A rule that became stricter after an object was stored must never
// block changes of its finalizers or labels. So the rules on the spec run only if the spec changed. While the object is
// being deleted only the limits of new free-form blocks hold: they bound what everybody who reads the object has to hold.
func validateUpdate(c change) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(c.meta, c.oldMeta, field.NewPath("metadata"))
	errs = append(errs, c.always...)

	// Strict comparison: unset and empty lists are different specs.
	switch {
	case reflect.DeepEqual(c.spec, c.oldSpec):
		return errs
	case c.oldMeta.DeletionTimestamp != nil:
		return append(errs, validateNewBlocks(c.spec, c.oldSpec)...)
	default:
		return append(errs, c.rules()...)
	}
}

// immutable refuses a changed value of an immutable field. remedy completes the sentence "field is immutable: ...".
func immutable[T any](value, old T, path *field.Path, remedy string) field.ErrorList {
	if reflect.DeepEqual(value, old) {
		return nil
	}

	return field.ErrorList{field.Invalid(path, value, "field is immutable: "+remedy)}
}

// immutableClusterRef refuses another OmniCluster for an object that one counts: counted is that of its status, nil before. What the
// object made there would be taken away. A reference that nobody counted, a typing error for example, may be corrected, and
// one that changed before the status said who counts it may be put back.
func immutableClusterRef(ref, old v1alpha1.LocalObjectReference, counted *v1alpha1.LocalObjectReference, remedy string) field.ErrorList {
	if counted == nil || ref.Name == counted.Name {
		return nil
	}

	return immutable(ref.Name, old.Name, field.NewPath("spec", "clusterRef", "name"), "OmniCluster \""+counted.Name+"\" counts this object. "+remedy)
}

// deleteCommand returns the command that deletes an object.
func deleteCommand(resource string, meta *metav1.ObjectMeta) string {
	return "kubectl delete " + resource + " " + meta.Name + " -n " + meta.Namespace
}
