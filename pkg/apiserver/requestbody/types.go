package requestbody

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry"
)

// maxWrongTypes is how many values of a wrong type one answer names.
const maxWrongTypes = 20

// explain returns the refusal of a write with values of a wrong type, as a custom resource has it: field by field, without a value. It
// returns nil if all values have the types of the kind. The library's own errors name a Go type, or only the patch.
func (b bodies) explain(ctx context.Context, r *http.Request, body []byte) error {
	info, found := genericapirequest.RequestInfoFrom(r.Context())
	if !found || info.APIGroup != v1alpha1.GroupName {
		return nil
	}

	object, known := registry.Objects()[info.Resource]
	if !known {
		return nil
	}

	kind, of := reflect.TypeOf(object).Elem().Name(), reflect.TypeOf(object)
	if info.Subresource == "scale" {
		kind, of = "Scale", reflect.TypeFor[autoscalingv1.Scale]()
	}

	text, err := foreign.ToJSON(ctx, body, b.limits())
	if err != nil {
		return nil
	}

	wrong := &wrongTypes{}
	if patchTypeOf(r) == types.JSONPatchType {
		wrong.inOperations(of, text)
	} else {
		wrong.find(of, text, nil)
	}

	if len(wrong.errs) == 0 {
		return nil
	}

	var named struct{ Metadata struct{ Name string } }
	_ = json.Unmarshal(text, &named) // a name of a wrong type is none

	refusal := apierrors.NewInvalid(v1alpha1.Kind(kind), cmp.Or(info.Name, named.Metadata.Name), wrong.errs)
	if patchTypeOf(r) == types.ApplyYAMLPatchType { // see kit.refuseApply: Flux answers 422 with a deletion
		refusal.ErrStatus.Reason, refusal.ErrStatus.Code = metav1.StatusReasonBadRequest, http.StatusBadRequest
	}

	return refusal
}

// wrongTypes collects the values that do not fit into the Go type at their place.
type wrongTypes struct{ errs field.ErrorList }

// add notes a value; that is its JSON type, as an OpenAPI document names it.
func (w *wrongTypes) add(at *field.Path, is, must string) {
	if len(w.errs) < maxWrongTypes {
		w.errs = append(w.errs, field.Invalid(at, is, must))
	}
}

// find looks at a value and at what is in it. Fields that the type does not have are left to the library, and so is a null.
func (w *wrongTypes) find(of reflect.Type, raw json.RawMessage, at *field.Path) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}

	is := typeOfJSON(raw)

	switch {
	case is == "null":
	case isLeaf(of):
		if err := json.Unmarshal(raw, reflect.New(of).Interface()); err != nil {
			w.add(at, is, mustBe(of, is, err))
		}
	case of.Kind() == reflect.Slice && is == "array":
		var elements []json.RawMessage
		if json.Unmarshal(raw, &elements) != nil {
			return
		}

		for i, element := range elements {
			w.find(of.Elem(), element, at.Index(i))
		}
	case of.Kind() != reflect.Slice && is == "object":
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return
		}

		for _, name := range slices.Sorted(maps.Keys(members)) {
			if member, path := memberOf(of, name, at); member != nil {
				w.find(member, members[name], path)
			}
		}
	default:
		w.add(at, is, mustBe(of, is, nil))
	}
}

// inOperations looks at the values of a JSON patch.
func (w *wrongTypes) inOperations(of reflect.Type, text []byte) {
	var operations []struct {
		Path  string
		Value json.RawMessage
	}
	if json.Unmarshal(text, &operations) != nil {
		return
	}

	unescape := strings.NewReplacer("~1", "/", "~0", "~")

	for _, operation := range operations {
		var at *field.Path

		target := of
		for _, step := range strings.Split(operation.Path, "/")[1:] {
			if target != nil {
				target, at = memberOf(target, unescape.Replace(step), at)
			}
		}

		if target != nil && operation.Value != nil {
			w.find(target, operation.Value, at)
		}
	}
}

// memberOf returns the type of a member of a value, and its path; nil for none, and for what is in a free-form block.
func memberOf(of reflect.Type, name string, at *field.Path) (reflect.Type, *field.Path) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}

	switch {
	case isLeaf(of):
		return nil, nil
	case of.Kind() == reflect.Map:
		return of.Elem(), at.Key(name)
	case of.Kind() == reflect.Slice:
		index, _ := strconv.Atoi(name) // "-" stands for one more

		return of.Elem(), at.Index(index)
	}

	for i := range of.NumField() {
		member := of.Field(i)
		tag, _, _ := strings.Cut(member.Tag.Get("json"), ",")

		if tag == name && tag != "" {
			return member.Type, at.Child(name)
		}

		if member.Anonymous && tag == "" {
			if inner, path := memberOf(member.Type, name, at); inner != nil {
				return inner, path
			}
		}
	}

	return nil, nil
}

// isLeaf reports whether a value of the type is read as a whole.
func isLeaf(of reflect.Type) bool {
	if reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) || of == reflect.TypeFor[[]byte]() {
		return true
	}

	return of.Kind() != reflect.Struct && of.Kind() != reflect.Map && of.Kind() != reflect.Slice
}

// mustBe says what belongs in the place of a value of another JSON type, and how to write it.
func mustBe(of reflect.Type, is string, err error) string {
	switch of {
	case reflect.TypeFor[v1alpha1.FreeForm]():
		return err.Error()
	case reflect.TypeFor[v1alpha1.Duration]():
		return "must be a duration such as 10m"
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return "must be a time such as 2026-01-02T15:04:05Z"
	case reflect.TypeFor[intstr.IntOrString]():
		return "must be an integer or a string"
	case reflect.TypeFor[[]byte]():
		return "must be text in base64"
	}

	must := map[reflect.Kind]string{
		reflect.Slice: "must be a list", reflect.Map: "must be a map", reflect.String: "must be a string", reflect.Bool: "must be true or false",
		reflect.Int32: "must be an integer of 32 bits", reflect.Int64: "must be an integer",
	}[of.Kind()]

	switch isScalar := of.Kind() == reflect.Bool || of.Kind() == reflect.Int32 || of.Kind() == reflect.Int64; {
	case of.Kind() == reflect.String && (is == "integer" || is == "number" || is == "boolean"):
		return must + ": put it in quotes"
	case isScalar && is == "string":
		return must + ": write it without quotes"
	default:
		return cmp.Or(must, "must be an object")
	}
}

// typeOfJSON names the type of a JSON value as an OpenAPI document does.
func typeOfJSON(raw json.RawMessage) string {
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}

	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}

	return "integer"
}
