package validation

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// maxOmniName is the largest length of a cluster's or worker set's name in Omni.
const maxOmniName = 63

// Compiled once: compiling it for each write took a twentieth of the time of a create.
var omniName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// isOmniName reports whether Omni accepts the text as the name of a cluster or worker set.
func isOmniName(name string) bool { return len(name) <= maxOmniName && omniName.MatchString(name) }

// isUUID reports whether the text is a UUID in one of the spellings that Omni accepts.
func isUUID(text string) bool {
	_, ok := v1alpha1.CanonicalUUID(text)

	return ok
}

// invalidName returns the error for an effective name that breaks its rule. Its field is the one in the spec, even if
// the name comes from metadata.name: only the field in the spec can be chosen freely.
func invalidName(specified, effective, rule string, path *field.Path) *field.Error {
	if specified == "" {
		return field.Invalid(path, effective, "metadata.name cannot serve here, set it: "+rule)
	}

	return field.Invalid(path, effective, rule)
}
