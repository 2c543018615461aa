package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
)

// validateEnum checks one of several words. An empty one stands for the default.
func validateEnum[T ~string](value T, path *field.Path, words ...T) field.ErrorList {
	if value == "" || slices.Contains(words, value) {
		return nil
	}

	return field.ErrorList{field.NotSupported(path, value, words)}
}

// validateDeletionPolicy checks a deletion policy that has no default, because both choices can
// surprise: one deletes, the other leaves a credential behind.
func validateDeletionPolicy(policy omni.DeletionPolicy, path *field.Path) field.ErrorList {
	if policy == "" {
		return field.ErrorList{field.Required(path, "choose Delete or Orphan")}
	}

	return validateEnum(policy, path, omni.DeletionDelete, omni.DeletionOrphan)
}
