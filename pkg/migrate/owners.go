package migrate

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// weOwn reports whether a field, or a part of it, was last written by this command.
func weOwn(obj *unstructured.Unstructured, path ...string) bool {
	return lastWriters(obj, path...)[fieldManager]
}

// onlyWeWrote reports whether nobody but this command has written a field, or any part of it.
func onlyWeWrote(obj *unstructured.Unstructured, path ...string) bool {
	writers := lastWriters(obj, path...)

	return len(writers) == 1 && writers[fieldManager]
}

// othersThanUs names the other field managers that own a field, for people.
func othersThanUs(obj *unstructured.Unstructured, path ...string) string {
	writers := lastWriters(obj, path...)
	delete(writers, fieldManager)

	if len(writers) == 0 {
		return "somebody else"
	}

	return strings.Join(slices.Sorted(maps.Keys(writers)), ", ")
}

// lastWriters returns the field managers that own a field, or a part of it. Without a path it returns those that own
// anything.
func lastWriters(obj *unstructured.Unstructured, path ...string) map[string]bool {
	writers := map[string]bool{}

	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "status" && ownsPath(entry.FieldsV1, path) {
			writers[entry.Manager] = true
		}
	}

	return writers
}

// ownsPath reports whether managed fields have a field, or a part of it.
func ownsPath(fields *metav1.FieldsV1, path []string) bool {
	if len(path) == 0 {
		return true
	}

	owned := &fieldpath.Set{}
	if fields == nil || owned.FromJSON(fields.GetRawReader()) != nil {
		return false
	}

	last := len(path) - 1
	for _, name := range path[:last] {
		owned = owned.WithPrefix(fieldpath.PathElement{FieldName: &name})
	}

	field := fieldpath.PathElement{FieldName: &path[last]}

	return owned.Members.Has(field) || !owned.WithPrefix(field).Empty()
}

// withoutUs returns the managed fields of an object without ours.
func withoutUs(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	kept := []metav1.ManagedFieldsEntry{}

	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != fieldManager {
			kept = append(kept, entry)
		}
	}

	return kept
}
