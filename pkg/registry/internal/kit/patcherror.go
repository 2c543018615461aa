package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
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

// refuseApply turns the refusal of a server-side apply to an object that exists into one that no client answers with a deletion.
//
// With force: true, Flux's kustomize-controller takes each 409 and 422, and each "is immutable", for the change of a field that cannot
// change: it deletes the object and makes it anew. A mistyped version in Git is a 422, too, and the deletion of an OmniCluster destroys
// its cluster. 400 means the same to clients (correct the request, do not repeat it), and is how an apply with a value of a wrong type is
// answered already; 403 would read as a missing right. A conflict between field managers stays: an apply with force has none, and kubectl
// explains it.
//
// kubectl apply --force does the same after a refused merge patch, whose answers stay: kubectl prints the whole patch, with what is secret
// in it, beside any other code.
func refuseApply(err error) error {
	var refusal *apierrors.StatusError
	if !errors.As(err, &refusal) || apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return err
	}

	status := *refusal.ErrStatus.DeepCopy()

	if status.Reason == metav1.StatusReasonConflict {
		status.Message += ": remove metadata.resourceVersion from the manifest"
	}

	if status.Reason == metav1.StatusReasonConflict || status.Reason == metav1.StatusReasonInvalid {
		status.Reason, status.Code = metav1.StatusReasonBadRequest, http.StatusBadRequest
	}

	status.Message = strings.ReplaceAll(status.Message, "immutable", "unchangeable")

	return &apierrors.StatusError{ErrStatus: status}
}

// sameJSON reports whether two JSON texts are equivalent: neither the order of keys nor the escaping of characters
// counts. Numbers are equal only if they are written the same: 1.0 and 1.10 may be versions, and as floats
// neighbouring large integers would be equal. If a key occurs twice, the last one counts.
func sameJSON(a, b []byte) bool {
	first, err := decodeExactly(a)
	if err != nil {
		return false
	}

	second, err := decodeExactly(b)

	return err == nil && reflect.DeepEqual(first, second)
}

// decodeExactly decodes a text and keeps every number as it is written.
func decodeExactly(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var value any

	err := decoder.Decode(&value)

	return value, err
}
