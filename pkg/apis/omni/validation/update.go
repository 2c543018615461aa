package validation

import (
	"fmt"
	"reflect"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
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

// validateObjectName checks the name of a Kubernetes object in a reference; what says which object the user has to
// name.
func validateObjectName(name string, path *field.Path, what string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name "+what)}
	}

	return invalidIf(apivalidation.NameIsDNSSubdomain(name, false), name, path)
}

// validateNamespaceName checks the name of a namespace.
func validateNamespaceName(name string, path *field.Path, what string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name "+what)}
	}

	return invalidIf(validation.IsDNS1123Label(name), name, path)
}

// validateDataKey checks a key of a Secret or ConfigMap.
func validateDataKey(key string, path *field.Path) field.ErrorList {
	return invalidIf(validation.IsConfigMapKey(key), key, path)
}

// requireDataKey is validateDataKey for a key that has to be set.
func requireDataKey(key string, path *field.Path, what string) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, what)}
	}

	return validateDataKey(key, path)
}

// validateReference checks a reference to another object of the same namespace.
func validateReference(ref v1alpha1.LocalObjectReference, path *field.Path, what string) field.ErrorList {
	return validateObjectName(ref.Name, path.Child("name"), what)
}

// validateSecretKeyReference checks a reference to one key of a Secret. An empty key stands for the default one.
func validateSecretKeyReference(ref v1alpha1.SecretKeyReference, path *field.Path, what string) field.ErrorList {
	errs := validateObjectName(ref.Name, path.Child("name"), what)
	if ref.Key != "" {
		errs = append(errs, validateDataKey(ref.Key, path.Child("key"))...)
	}

	return errs
}

// validateValueSource checks that exactly one source is set, and that it is complete.
func validateValueSource(source *v1alpha1.ValueSource, path *field.Path) field.ErrorList {
	switch {
	case source.ConfigMapKeyRef != nil && source.SecretKeyRef != nil:
		return field.ErrorList{field.Forbidden(path.Child("secretKeyRef"), "cannot be combined with configMapKeyRef: keep one of them")}
	case source.ConfigMapKeyRef != nil:
		return validateKeyReference(source.ConfigMapKeyRef, path.Child("configMapKeyRef"), "the ConfigMap that holds the text")
	case source.SecretKeyRef != nil:
		return validateKeyReference(source.SecretKeyRef, path.Child("secretKeyRef"), "the Secret that holds the text")
	default:
		return field.ErrorList{field.Required(path, "set configMapKeyRef or secretKeyRef")}
	}
}

func validateKeyReference(ref *v1alpha1.KeyReference, path *field.Path, what string) field.ErrorList {
	errs := validateObjectName(ref.Name, path.Child("name"), what)

	return append(errs, requireDataKey(ref.Key, path.Child("key"), "name the key inside its data")...)
}

// invalidIf turns the messages of a Kubernetes rule into one error.
func invalidIf(messages []string, value string, path *field.Path) field.ErrorList {
	if len(messages) == 0 {
		return nil
	}

	return field.ErrorList{field.Invalid(path, value, strings.Join(messages, "; "))}
}

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

// maxWarning is the largest length of a warning in bytes: clients expect short lines, and Kubernetes drops warnings
// when all of them together become too long.
const maxWarning = 120

// maxWarned is how many things of one kind get a warning each; one more warning counts the others.
const maxWarned = 5

// warning formats "path: message". If that is too long, for example because the path has a map key, it cuts off the
// end of the path. It drops a character that the cut has split: a warning that is not UTF-8 is never sent.
func warning(path *field.Path, message string) string {
	const gap = "..."

	at := path.String()
	if room := maxWarning - len(message) - len(": "); len(at) > room {
		at = at[:max(room-len(gap), 0)] + gap
	}

	text := at + ": " + message

	return strings.ToValidUTF8(text[:min(len(text), maxWarning)], "")
}
