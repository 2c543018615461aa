package kit

import (
	"bytes"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// creation is the context key of a create request's body.
type creation struct{}

// WithCreation stores the body of a create request, as JSON, in the context. See ownFalse.
func WithCreation(ctx context.Context, body []byte) context.Context {
	return context.WithValue(ctx, creation{}, body)
}

// ownFalse makes the creator of an object the owner of the fields that its request sets to false.
//
// The library makes the creator own the fields that differ from an empty object. Our booleans are always written, so
// an empty object has false, too. Without ownFalse nobody would own a false that the creator set deliberately, and
// another manager's apply of true would meet no conflict. Only the text of the request shows whether false was in it.
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

	request, stored, err := s.specs(body, created)
	if err != nil {
		return
	}

	var owned fieldpath.Set
	if entry.FieldsV1 == nil || owned.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return
	}

	// Admission may have changed the value, and fields that the kind does not have are not stored.
	falseInBoth(fieldpath.MakePathOrDie("spec"), request, stored, &owned)

	if raw, err := owned.ToJSON(); err == nil {
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		created.SetManagedFields(entries)
	}
}

// onlyUpdate returns the entry of the creator: the only one whose operation is Update. An object that is created with
// the managed fields of another one, for example from a backup, has several entries and keeps them unchanged.
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

// specs decodes the spec of a request and the one that would be stored. Both are decoded once as a whole: no rule has
// bounded their depth yet, and a text that is decoded level by level is copied at each level.
func (s strategy[T]) specs(body []byte, created T) (request, stored any, err error) {
	var sent struct {
		Spec any `json:"spec"`
	}

	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a number beyond all floats is no error here

	if err := decoder.Decode(&sent); err != nil {
		return nil, nil, err
	}

	encoded, err := s.descriptor.Spec.encode(created)
	if err != nil {
		return nil, nil, err
	}

	stored, err = decodeExactly(encoded)

	return sent.Spec, stored, err
}

// falseInBoth adds the paths that are false in both values. It skips lists, which are owned as a whole or by
// keys; no boolean in their elements is written when it is unset.
func falseInBoth(at fieldpath.Path, a, b any, paths *fieldpath.Set) {
	if a == any(false) && b == any(false) {
		paths.Insert(at.Copy())

		return
	}

	first, isMap := a.(map[string]any)
	second, isMapToo := b.(map[string]any)

	if !isMap || !isMapToo {
		return
	}

	for name, value := range first {
		if other, both := second[name]; both {
			field := name
			falseInBoth(append(at.Copy(), fieldpath.PathElement{FieldName: &field}), value, other, paths)
		}
	}
}
