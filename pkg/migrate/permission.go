package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// permits reports whether an object still has the permission of the takeover that this command gave it.
func permits(c *Converted, obj *unstructured.Unstructured) bool {
	if c.Permission == "" {
		return false
	}

	set, _, _ := unstructured.NestedBool(obj.Object, "spec", c.Permission)

	return set && weOwn(obj, "spec", c.Permission)
}

// endPermission takes the permission away from an object that is Ready, which means that it has taken over what it
// names. With the permission, its next change could write over what somebody else made, and its deletion would delete
// that. A permission that others have written, too, is theirs and stays.
func (m *Migration) endPermission(ctx context.Context, c *Converted, obj *unstructured.Unstructured) error {
	if !permits(c, obj) {
		return nil
	}

	writers := lastWriters(obj, "spec", c.Permission)
	delete(writers, fieldManager)

	if len(writers) > 0 {
		m.say("      %s: spec.%s stays true, because %s wrote it, too. It is not needed any more: take it out there",
			c.ID(), c.Permission, strings.Join(slices.Sorted(maps.Keys(writers)), ", "))

		return nil
	}

	return m.patchOurs(ctx, c, map[string]any{
		"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()}, // of the object that is Ready
		"spec":     map[string]any{c.Permission: false},
	})
}

// whilePermitted says what has to be done about the permission of an object that is not Ready; empty if it has none.
func whilePermitted(c *Converted, obj *unstructured.Unstructured) string {
	if !permits(c, obj) {
		return ""
	}

	return fmt.Sprintf("\nspec.%s stays true until it is Ready: run this again then, or set it to false", c.Permission)
}
