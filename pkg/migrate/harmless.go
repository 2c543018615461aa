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

// madeHarmless reports whether this command made an object harmless, and nobody has set its policy since. Of a policy with
// several fields that is the one that makes it harmless: an undo writes the others.
func madeHarmless(obj *unstructured.Unstructured) bool {
	switch field := policyField(obj.GetKind()); field {
	case "":
		return false
	case "deletePolicy":
		return isHarmless(obj) && weOwn(obj, "spec", field, "orphan")
	default:
		return isHarmless(obj) && weOwn(obj, "spec", field)
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
