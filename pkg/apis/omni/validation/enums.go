package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEnum checks that a value is one of the allowed ones. An empty value stands for the default.
func validateEnum[T ~string](value T, path *field.Path, words ...T) field.ErrorList {
	if value == "" || slices.Contains(words, value) {
		return nil
	}

	return field.ErrorList{field.NotSupported(path, value, words)}
}
