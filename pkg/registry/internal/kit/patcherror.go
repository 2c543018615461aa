package kit

import (
	"errors"
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
