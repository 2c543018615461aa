package kit

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// patchField is the field that the library names when a patch cannot be applied.
	patchField = "patch"
	// untypedPatch begins the library's error for an apply with a value of a wrong type, or a field that does not exist.
	untypedPatch = "failed to create typed patch object"
	// gotValue precedes the value of a wrong type in that error.
	gotValue = ", got "
	// wantedMap ends that error where the value should be a map.
	wantedMap = "expected map"
)

// withoutContent takes what the user or somebody before wrote out of the library's errors for a patch: the whole object,
// the whole patch, or the value of a wrong type. Specs may hold secrets, and messages get into the audit log and the log
// of the process. What is wrong, and in which field, stays.
func withoutContent(err error) error {
	var refusal *apierrors.StatusError

	switch {
	case errors.As(err, &refusal) && isBadPatch(refusal.ErrStatus):
		return withoutPatchedObject(refusal.ErrStatus)
	case strings.HasPrefix(err.Error(), untypedPatch):
		return withoutAppliedValue(err.Error())
	default:
		return err
	}
}

// isBadPatch reports whether the library says that a patch gives no valid object.
func isBadPatch(status metav1.Status) bool {
	return status.Reason == metav1.StatusReasonInvalid && status.Details != nil &&
		len(status.Details.Causes) > 0 && status.Details.Causes[0].Field == patchField
}

// withoutPatchedObject makes the same refusal without the text of the object or of the patch, which the library quotes
// before the details.
func withoutPatchedObject(status metav1.Status) error {
	details := "the patch gives no valid object"

	value, found := strings.CutPrefix(status.Details.Causes[0].Message, field.ErrorTypeInvalid.String()+": ")
	if quoted, err := strconv.QuotedPrefix(value); found && err == nil {
		details = strings.TrimPrefix(value[len(quoted):], ": ")
	}

	kind := schema.GroupKind{Group: status.Details.Group, Kind: status.Details.Kind}

	return apierrors.NewInvalid(kind, status.Details.Name, field.ErrorList{
		field.Invalid(field.NewPath(patchField), field.OmitValueType{}, details),
	})
}

// withoutAppliedValue cuts the message before the first value. The library's error has no status, so that clients would
// take it for an error of the server.
func withoutAppliedValue(message string) error {
	kept, _, cut := strings.Cut(message, gotValue)
	if cut && strings.HasSuffix(kept, wantedMap) {
		kept += ": write inline blocks, manifests and values as YAML fields, not as text after |"
	}

	return apierrors.NewBadRequest(kept)
}

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
