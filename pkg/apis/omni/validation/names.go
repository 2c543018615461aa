package validation

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxOmniName is the largest length of a cluster's or worker set's name in Omni.
	maxOmniName = 63
	omniName    = `^[A-Za-z0-9_-]+$`
	uuid        = `^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`
)

// matches tells whether the text matches the pattern. Patterns are constants, compiled where they
// are used: validation runs once per write, and package state is not wanted.
func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// isOmniName says whether Omni takes the text as the name of a cluster or worker set.
func isOmniName(name string) bool { return len(name) <= maxOmniName && matches(omniName, name) }

// isUUID says whether the text is a UUID in its usual form, with hyphens.
func isUUID(text string) bool { return matches(uuid, text) }

// invalidName is the error for an effective name that breaks its rule. The error is at the spec
// field even where the name comes from metadata.name, as only the spec field can be chosen freely.
func invalidName(specified, effective, rule string, path *field.Path) *field.Error {
	if specified == "" {
		return field.Invalid(path, effective, "metadata.name cannot serve here, set it: "+rule)
	}

	return field.Invalid(path, effective, rule)
}
