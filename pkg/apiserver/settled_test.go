package apiserver_test

import (
	"net/http"
	"testing"
)

const exports = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omnikubeconfigexports"

// settled is what of an object's metadata no second write of the same may change.
func settled(t *testing.T, object map[string]any) [2]any {
	t.Helper()

	metadata := object["metadata"].(map[string]any)

	return [2]any{metadata["generation"], metadata["resourceVersion"]}
}

// TestSameApplyWritesNothing: an empty map in a manifest is not in the stored object, and that is no difference.
func TestSameApplyWritesNothing(t *testing.T) {
	s := startServer(t)

	for name, template := range map[string]string{
		"annotations": `{annotations: {}}`, "labels": `{labels: {}}`, "nothing": `{}`, "both": `{labels: {}, annotations: {}}`, "one": `{labels: {a: b}, annotations: {}}`,
	} {
		manifest := `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniKubeconfigExport
metadata: {name: ` + name + `}
spec:
  clusterRef: {name: production}
  targetSecretRef: {name: kubeconfig}
  serviceAccount: {user: ci, groups: [ci]}
  ttl: 24h
  deletionPolicy: Delete
  secretTemplate: ` + template + "\n"

		apply := func(want int) [2]any {
			t.Helper()

			return settled(t, s.mustCall(t, want, http.MethodPatch, exports+"/"+name+"?fieldManager=one", "application/apply-patch+yaml", manifest))
		}

		first := apply(http.StatusCreated)
		for range 2 {
			if again := apply(http.StatusOK); again != first {
				t.Errorf("%s: generation and resource version %v, were %v", name, again, first)
			}
		}
	}
}
