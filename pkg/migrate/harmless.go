package migrate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policyField is the field of the spec that says what a deletion does; empty for a kind that has none.
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

// harmless is the policy with which the old operator lets go of what an object made.
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

// isHarmless reports whether a deletion of an object of theirs would destroy nothing, whoever acts on it.
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

// holds reports whether the old operator holds an object.
func holds(obj *unstructured.Unstructured) bool {
	for _, finalizer := range obj.GetFinalizers() {
		if finalizer == theirFinalizer {
			return true
		}
	}

	return false
}
