package kit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What is wrong with a patch is told without the object, the patch or the value that the library quotes.
func TestPatchErrorsWithoutContent(t *testing.T) {
	invalid := func(path string, value any, details string) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath(path), value, details)})
	}

	other := errors.New("another error, got secret")

	for name, test := range map[string]struct {
		err  error
		want string
		code int32
	}{
		"a value of a wrong type": {invalid("patch", `{"a":"\"secret\": x"}`, "bool: wanted"), ` "" is invalid: patch: Invalid value: bool: wanted`, http.StatusUnprocessableEntity},
		"wrapped":                 {fmt.Errorf("secret: %w", invalid("patch", "secret", "x")), ` "" is invalid: patch: Invalid value: x`, http.StatusUnprocessableEntity},
		"a value that is no text": {invalid("patch", []string{"secret"}, "x"), ` "" is invalid: patch: Invalid value: the patch gives no valid object`, http.StatusUnprocessableEntity},
		"an applied text": {
			errors.New("failed to create typed patch object (a/b; v1, Kind=C): errors:\n  .b: field not declared in schema\n  .a: expected map, got &{secret}\n  .c: expected map, got &{secret}"),
			"failed to create typed patch object (a/b; v1, Kind=C): errors:\n  .b: field not declared in schema\n  .a: expected map: write inline blocks, manifests and values as YAML fields, not as text after |",
			http.StatusBadRequest,
		},
		"an applied number": {errors.New("failed to create typed patch object (x): .a: expected boolean, got &{1}"), "failed to create typed patch object (x): .a: expected boolean", http.StatusBadRequest},
		"an unknown field":  {errors.New("failed to create typed patch object (x): .a: field not declared in schema"), "failed to create typed patch object (x): .a: field not declared in schema", http.StatusBadRequest},
	} {
		var status *apierrors.StatusError

		got := withoutContent(test.err)
		if !errors.As(got, &status) || got.Error() != test.want || status.ErrStatus.Code != test.code {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}

		if strings.Contains(fmt.Sprintf("%+v", status), "secret") {
			t.Errorf("%s: %+v", name, status)
		}
	}

	for _, unchanged := range []error{other, invalid("spec", "text", "x"), apierrors.NewConflict(schema.GroupResource{}, "a", other)} {
		if got := withoutContent(unchanged); got != unchanged {
			t.Errorf("%v became %v", unchanged, got)
		}
	}
}

// No refusal of an apply reads to Flux like one of an immutable field, which it answers with a deletion; its other answers stay.
func TestRefusedApply(t *testing.T) {
	clusters := schema.GroupResource{Group: "omni.texashpc.com", Resource: "omniclusters"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "OmniCluster"}, "a", field.ErrorList{field.Invalid(field.NewPath("spec", "clusterName"), "b", "field is immutable: x")})
	conflict := apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: "conflict with \"one\"", Field: ".spec"}}, "x")

	for name, test := range map[string]struct {
		err  error
		want string
		code int32
	}{
		"a rule":  {invalid, `OmniCluster "a" is invalid: spec.clusterName: Invalid value: "b": field is unchangeable: x`, http.StatusBadRequest},
		"wrapped": {fmt.Errorf("write: %w", invalid), `OmniCluster "a" is invalid: spec.clusterName: Invalid value: "b": field is unchangeable: x`, http.StatusBadRequest},
		"the version of a live object": {
			apierrors.NewConflict(clusters, "a", errors.New("modified")),
			`Operation cannot be fulfilled on omniclusters.omni.texashpc.com "a": modified: remove metadata.resourceVersion from the manifest`, http.StatusBadRequest,
		},
		"a policy of the hub": {
			apierrors.NewForbidden(clusters, "a", errors.New("the size is immutable")),
			`omniclusters.omni.texashpc.com "a" is forbidden: the size is unchangeable`, http.StatusForbidden,
		},
		"another manager's field": {conflict, conflict.Error(), http.StatusConflict},
		"too many requests":       {apierrors.NewTooManyRequests("later", 1), "later", http.StatusTooManyRequests},
	} {
		var status *apierrors.StatusError
		if got := refuseApply(test.err); !errors.As(got, &status) || got.Error() != test.want || status.ErrStatus.Code != test.code {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}

	if got := refuseApply(nil); got != nil {
		t.Errorf("no error became %v", got)
	}

	if invalid.ErrStatus.Code != http.StatusUnprocessableEntity {
		t.Error("the library's error was changed")
	}
}
