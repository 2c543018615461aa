package kit

import (
	"bytes"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// creation is the key of a create request's body in its context.
type creation struct{}

// WithCreation remembers the body of a create request, as JSON. See ownFalse.
func WithCreation(ctx context.Context, body []byte) context.Context {
	return context.WithValue(ctx, creation{}, body)
}

// ownFalse gives the creator of an object the fields that its request sets to false.
//
// The library takes for the creator's what differs from an empty object. Our booleans are always written, so that an empty
// object has false, too, and nobody would own what somebody deliberately set: the next manager's apply of true would meet no
// conflict. Whether false was in the request is seen in its text only.
func (s strategy[T]) ownFalse(ctx context.Context, created T) {
	body, _ := ctx.Value(creation{}).([]byte)
	if !bytes.Contains(body, []byte("false")) {
		return
	}

	entries := created.GetManagedFields()

	entry := onlyUpdate(entries)
	if entry == nil {
		return
	}

	stored, err := s.descriptor.Spec.encode(created)
	if err != nil {
		return
	}

	var request struct {
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(body, &request) != nil {
		return
	}

	var owned fieldpath.Set
	if entry.FieldsV1 == nil || owned.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return
	}

	// Admission may have changed the value, and what is no field of the kind is not stored.
	falseInBoth(fieldpath.MakePathOrDie("spec"), request.Spec, stored, &owned)

	if raw, err := owned.ToJSON(); err == nil {
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		created.SetManagedFields(entries)
	}
}

// onlyUpdate is the entry of the creator: the only one of a create or update. An object that comes with the managed fields
// of another one, from a backup say, has several, and keeps them as they are.
func onlyUpdate(entries []metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	var found *metav1.ManagedFieldsEntry

	for i := range entries {
		if entries[i].Operation != metav1.ManagedFieldsOperationUpdate || entries[i].Subresource != "" {
			continue
		}

		if found != nil {
			return nil
		}

		found = &entries[i]
	}

	return found
}

// falseInBoth adds the paths that are false in two JSON texts. It does not go into lists, which are owned as a whole or by
// keys; no boolean of their elements is written when it is unset.
func falseInBoth(at fieldpath.Path, a, b json.RawMessage, paths *fieldpath.Set) {
	if string(a) == "false" && string(b) == "false" {
		paths.Insert(at.Copy())

		return
	}

	var first, second map[string]json.RawMessage
	if json.Unmarshal(a, &first) != nil || json.Unmarshal(b, &second) != nil {
		return
	}

	for name, value := range first {
		if other, both := second[name]; both {
			field := name
			falseInBoth(append(at.Copy(), fieldpath.PathElement{FieldName: &field}), value, other, paths)
		}
	}
}
