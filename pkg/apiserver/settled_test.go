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

// TestSameApplyWithoutADeletionPolicyWritesNothing: the default is no difference to a manifest that leaves it out, nor to one
// that says the same.
func TestSameApplyWithoutADeletionPolicyWritesNothing(t *testing.T) {
	s := startServer(t)

	for path, manifest := range map[string]string{
		exports + "/a": `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniKubeconfigExport
metadata: {name: a}
spec:
  clusterRef: {name: production}
  targetSecretRef: {name: kubeconfig}
  serviceAccount: {user: ci, groups: [ci]}
  ttl: 24h
`,
		"/apis/omni.texashpc.com/v1alpha1/namespaces/default/omnisecretsyncs/a": `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniSecretSync
metadata: {name: a}
spec:
  clusterRef: {name: production}
  kubeconfigSecretRef: {name: kubeconfig}
  sourceSecretRef: {name: source}
  targetSecretRef: {name: target, namespace: apps}
`,
	} {
		apply := func(want int, manager, manifest string) map[string]any {
			t.Helper()

			return s.mustCall(t, want, http.MethodPatch, path+"?fieldManager="+manager, "application/apply-patch+yaml", manifest)
		}

		first := apply(http.StatusCreated, "one", manifest)
		if policy := first["spec"].(map[string]any)["deletionPolicy"]; policy != "Delete" { //nolint:forcetypeassert // every object has a spec
			t.Errorf("%s: deletionPolicy %v", path, policy)
		}

		for range 2 {
			if again := settled(t, apply(http.StatusOK, "one", manifest)); again != settled(t, first) {
				t.Errorf("%s: generation and resource version %v, were %v", path, again, settled(t, first))
			}
		}

		// Nobody owns a default, so who sets another one is in no conflict.
		said := apply(http.StatusOK, "two", manifest+"  deletionPolicy: Delete\n")
		if said["metadata"].(map[string]any)["generation"] != first["metadata"].(map[string]any)["generation"] { //nolint:forcetypeassert // every object has metadata
			t.Errorf("%s: another generation: %v", path, said["metadata"])
		}

		apply(http.StatusOK, "two", manifest+"  deletionPolicy: Orphan\n")
	}
}

// TestOrderOfKeys: clients that write a free-form block in different orders do not make new generations in turns.
func TestOrderOfKeys(t *testing.T) {
	s := startServer(t)
	release := func(values string) string {
		return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"r"},"spec":{"clusterRef":{"name":"c"},` +
			`"kubeconfigSecretRef":{"name":"k"},"chart":{"repository":"https://charts.example.com","chart":"web","values":` + values + `}}}`
	}

	created := s.mustCall(t, http.StatusCreated, http.MethodPost, releases+"?fieldManager=one", "application/json", release(`{"b":{"d":1,"c":2},"a":3}`))
	first := settled(t, created)

	// One that writes the keys sorted, and one that puts back what it has.
	s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r?fieldManager=two", "application/apply-patch+yaml", release(`{"a":3,"b":{"c":2,"d":1}}`))

	applied := settled(t, s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r?fieldManager=two", "application/apply-patch+yaml", release(`{"b":{"c":2,"d":1},"a":3}`)))
	if applied[0] != first[0] {
		t.Errorf("generation %v, was %v", applied[0], first[0])
	}

	for _, values := range []string{`{"a":3,"b":{"d":1,"c":2}}`, `{"b":{"c":2,"d":1},"a":3}`, `{"b":{"d":1,"c":2},"a":3}`} {
		patch := s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r?fieldManager=one", "application/json-patch+json",
			`[{"op":"replace","path":"/spec/chart/values","value":`+values+`}]`)
		if again := settled(t, patch); again != applied {
			t.Errorf("%s: generation and resource version %v, were %v", values, again, applied)
		}
	}

	changed := s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r", "application/json-patch+json", `[{"op":"replace","path":"/spec/chart/values/a","value":4}]`)
	if settled(t, changed)[0] == first[0] {
		t.Error("another value is no new generation")
	}
}
