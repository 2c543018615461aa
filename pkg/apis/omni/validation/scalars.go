package validation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// noLimit is the upper bound for durations without one: the largest duration.
const noLimit = time.Duration(1<<63 - 1)

// parseDuration reads a duration that lies between two bounds, inclusive. An empty one is 0 and valid.
func parseDuration(text v1alpha1.Duration, lowest, highest time.Duration, path *field.Path) (time.Duration, field.ErrorList) {
	if text == "" {
		return 0, nil
	}

	value, err := time.ParseDuration(string(text))
	if err != nil {
		return 0, field.ErrorList{field.Invalid(path, text, "must be a duration such as 30s, 10m or 24h")}
	}

	if value < lowest {
		return value, field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must be at least %s", short(lowest)))}
	}

	if value > highest {
		return value, field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must be at most %s", short(highest)))}
	}

	return value, nil
}

// requireDuration is parseDuration for a field that has to be set.
func requireDuration(text v1alpha1.Duration, lowest, highest time.Duration, path *field.Path, what string) (time.Duration, field.ErrorList) {
	if text == "" {
		return 0, field.ErrorList{field.Required(path, what)}
	}

	return parseDuration(text, lowest, highest, path)
}

// validateDuration is parseDuration for callers that need only the errors.
func validateDuration(text v1alpha1.Duration, lowest, highest time.Duration, path *field.Path) field.ErrorList {
	_, errs := parseDuration(text, lowest, highest, path)

	return errs
}

// short formats whole hours and minutes without zeros: 10m, not 10m0s.
func short(d time.Duration) string {
	switch {
	case d > 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d > 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return d.String()
	}
}

// validateEnum checks that a value is one of the allowed ones. An empty value stands for the default.
func validateEnum[T ~string](value T, path *field.Path, words ...T) field.ErrorList {
	if value == "" || slices.Contains(words, value) {
		return nil
	}

	return field.ErrorList{field.NotSupported(path, value, words)}
}
