package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

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
