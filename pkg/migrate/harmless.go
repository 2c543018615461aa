package migrate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policyField is the field of the spec that says what a deletion does; empty for a kind without such a field.
func policyField(kind string) string {
	switch kind {
	case "OmniCluster":
		return "deletePolicy"
	case "OmniKubeconfigExport", "OmniSecretSync", "OmniHelmRelease":
		return "deletionPolicy"
	default:
		return ""
	}
}

// harmless is the policy with which the old operator deletes an object and leaves what the object made.
func harmless(kind string) any {
	switch policyField(kind) {
	case "deletePolicy":
		return map[string]any{"orphan": true}
	case "deletionPolicy":
		return "Orphan"
	default:
		return nil
	}
}

// harmlessPath is the path of the one field that harmless sets; nil for a kind without a policy.
func harmlessPath(kind string) []string {
	switch field := policyField(kind); field {
	case "":
		return nil
	case "deletePolicy":
		return []string{"spec", field, "orphan"}
	default:
		return []string{"spec", field}
	}
}

// madeHarmless reports whether this command has set the policy with which an object lets go, and nobody else has since.
// It asks for the one field that it sets: undo writes another part of the same policy.
func madeHarmless(obj *unstructured.Unstructured) bool {
	path := harmlessPath(obj.GetKind())
	if path == nil {
		return false
	}

	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)

	return (value == true || value == "Orphan") && onlyWeWrote(obj, path...)
}

// isHarmless reports whether deleting an object of the old operator destroys nothing, whichever operator handles it.
func isHarmless(obj *unstructured.Unstructured) bool {
	switch field := policyField(obj.GetKind()); field {
	case "":
		return true
	case "deletePolicy":
		orphan, _, _ := unstructured.NestedBool(obj.Object, "spec", field, "orphan")
		destroy, _, _ := unstructured.NestedBool(obj.Object, "spec", field, "destroyMachines")

		return orphan && !destroy
	default:
		policy, _, _ := unstructured.NestedString(obj.Object, "spec", field)

		return policy == "Orphan"
	}
}

// holds reports whether an object has the old operator's finalizer.
func holds(obj *unstructured.Unstructured) bool {
	for _, finalizer := range obj.GetFinalizers() {
		if finalizer == theirFinalizer {
			return true
		}
	}

	return false
}
