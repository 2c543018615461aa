package kit

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// strategicMistakes are the prefixes of the library's errors for a bad strategic merge patch: a directive beside
// members of a free-form block, which has no Go type to look them up in; an unknown directive; a value of another
// type. The errors have no type of their own, and clients would take them for errors of the server.
//
//nolint:gochecknoglobals // a constant
var strategicMistakes = []string{
	"unable to find api field in struct ", "merging an object in json but data type is not struct", "unknown patch type", "expected a ",
}

// explainStrategic tells the client what to do instead.
func explainStrategic(err error) error {
	if err == nil || !slices.ContainsFunc(strategicMistakes, func(begin string) bool { return strings.HasPrefix(err.Error(), begin) }) {
		return err
	}

	return apierrors.NewBadRequest("the strategic merge patch names a field that does not exist, has a value of a wrong type, or mixes directives " +
		"such as $patch with members of a free-form block: use a merge patch (kubectl patch --type=merge)")
}
