package validation

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

const (
	minWindow = 15 * time.Minute
	maxWindow = 24 * time.Hour
	maxDays   = 7
	// minOverrideReason is the least length of the reason of an override, in characters; maxOverride bounds the whole
	// annotation, in bytes.
	minOverrideReason = 10
	maxOverride       = 1024
)

var (
	startOfWindow = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
	rolloutHash   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func validateWindow(one *v1alpha1.MaintenanceWindow, path *field.Path) field.ErrorList {
	errs := validateDays(one.Days, path.Child("days"))

	if !startOfWindow.MatchString(one.Start) {
		errs = append(errs, field.Invalid(path.Child("start"), one.Start, "must be a time of day with two digits each, such as 02:00"))
	}

	_, wrong := requireDuration(one.Duration, minWindow, maxWindow, path.Child("duration"), "say how long the window is open, such as 4h")
	errs = append(errs, wrong...)

	if one.TimeZone == "" {
		return append(errs, field.Required(path.Child("timeZone"), "name the time zone, such as Europe/Berlin, or UTC"))
	}

	if _, err := rollout.Zone(one.TimeZone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), one.TimeZone, err.Error()))
	}

	return errs
}

func validateDays(days []v1alpha1.Weekday, path *field.Path) field.ErrorList {
	switch {
	case len(days) == 0:
		return field.ErrorList{field.Required(path, "name at least one day, such as Sat")}
	case len(days) > maxDays:
		return field.ErrorList{field.TooMany(path, len(days), maxDays)}
	}

	var errs field.ErrorList

	for i, day := range days {
		errs = append(errs, requireEnum(day, path.Index(i), v1alpha1.Monday, v1alpha1.Tuesday, v1alpha1.Wednesday,
			v1alpha1.Thursday, v1alpha1.Friday, v1alpha1.Saturday, v1alpha1.Sunday)...)

		if slices.Contains(days[:i], day) {
			errs = append(errs, field.Duplicate(path.Index(i), day))
		}
	}

	return errs
}

// validateRolloutAnnotations checks an OmniCluster's annotations for OmniRolloutPolicies, if they are new or changed:
// values stored under older rules must not block other changes.
func validateRolloutAnnotations(annotations, old map[string]string) field.ErrorList {
	var errs field.ErrorList

	path := field.NewPath("metadata", "annotations")

	if zone, set := annotations[v1alpha1.AnnotationTimeZone]; set && zone != old[v1alpha1.AnnotationTimeZone] {
		if _, err := rollout.Zone(zone); err != nil {
			errs = append(errs, field.Invalid(path.Key(v1alpha1.AnnotationTimeZone), zone, err.Error()))
		}
	}

	value, set := annotations[v1alpha1.AnnotationRolloutOverride]
	if !set || value == old[v1alpha1.AnnotationRolloutOverride] {
		return errs
	}

	hash, reason, _ := strings.Cut(value, " ")

	switch at := path.Key(v1alpha1.AnnotationRolloutOverride); {
	case len(value) > maxOverride:
		errs = append(errs, field.TooLong(at, "", maxOverride))
	case !rolloutHash.MatchString(hash):
		errs = append(errs, field.Invalid(at, value, "must begin with the status.rollout.hash of this OmniCluster, then a space and a reason"))
	case utf8.RuneCountInString(strings.TrimSpace(reason)) < minOverrideReason:
		errs = append(errs, field.Invalid(at, value, "give a reason of at least 10 characters behind the hash"))
	}

	return errs
}
