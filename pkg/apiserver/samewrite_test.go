package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

const exports = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omnikubeconfigexports"

// versionsOf is the part of an object's metadata that a second, identical write must not change.
func versionsOf(t *testing.T, object map[string]any) [2]any {
	t.Helper()

	metadata := object["metadata"].(map[string]any)

	return [2]any{metadata["generation"], metadata["resourceVersion"]}
}

// TestEmptyMapsAreStored: an empty map or list comes back as it was written by each way of writing, with a new generation, as it does from a
// custom resource. kubectl apply and Argo CD compare the object with the manifest, and would see a difference each time.
func TestEmptyMapsAreStored(t *testing.T) {
	s := startServer(t)

	const (
		base = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniMachine","metadata":{"name":%q},"spec":{"clusterRef":{"name":"c"},"machineID":"11111111-2222-3333-4444-555555555555"%s}}`
		with = `"labels":{},"annotations":{},"patches":[],"install":{}`
		url  = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omnimachines"
	)

	for name, write := range map[string]struct{ content, body string }{
		"merge":     {"application/merge-patch+json", `{"spec":{` + with + `}}`},
		"strategic": {"application/strategic-merge-patch+json", `{"spec":{` + with + `}}`},
		"json":      {"application/json-patch+json", `[{"op":"add","path":"/spec/labels","value":{}},{"op":"add","path":"/spec/annotations","value":{}},{"op":"add","path":"/spec/patches","value":[]},{"op":"add","path":"/spec/install","value":{}}]`},
		"apply":     {"application/apply-patch+yaml", fmt.Sprintf(base, "apply", ","+with)},
	} {
		s.mustCall(t, http.StatusCreated, http.MethodPost, url, "application/json", fmt.Sprintf(base, name, ""))

		for generation := range 2 {
			object := s.mustCall(t, http.StatusOK, http.MethodPatch, url+"/"+name+"?fieldManager=a", write.content, write.body)
			spec, _ := object["spec"].(map[string]any)

			if got := object["metadata"].(map[string]any)["generation"]; got != json.Number("2") && got != float64(2) { // every object has metadata
				t.Errorf("%s: generation %v after %d writes", name, got, generation+1)
			}

			if fmt.Sprint(spec["labels"], spec["annotations"], spec["patches"], spec["install"]) != "map[] map[] [] map[]" {
				t.Errorf("%s: %v", name, spec)
			}
		}
	}
}

// TestSameApplyWritesNothing: an apply of the same empty maps is no change.
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

			return versionsOf(t, s.mustCall(t, want, http.MethodPatch, exports+"/"+name+"?fieldManager=one", "application/apply-patch+yaml", manifest))
		}

		first := apply(http.StatusCreated)
		for range 2 {
			if again := apply(http.StatusOK); again != first {
				t.Errorf("%s: generation and resource version %v, were %v", name, again, first)
			}
		}
	}
}

// TestSameApplyWithoutADeletionPolicyWritesNothing: a stored default does not differ from a manifest that leaves the
// field out, nor from one that sets the same value.
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
		if policy := first["spec"].(map[string]any)["deletionPolicy"]; policy != "Delete" { // every object has a spec
			t.Errorf("%s: deletionPolicy %v", path, policy)
		}

		for range 2 {
			if again := versionsOf(t, apply(http.StatusOK, "one", manifest)); again != versionsOf(t, first) {
				t.Errorf("%s: generation and resource version %v, were %v", path, again, versionsOf(t, first))
			}
		}

		// Nobody owns a default, so a client that sets another value meets no conflict.
		said := apply(http.StatusOK, "two", manifest+"  deletionPolicy: Delete\n")
		if said["metadata"].(map[string]any)["generation"] != first["metadata"].(map[string]any)["generation"] { // every object has metadata
			t.Errorf("%s: another generation: %v", path, said["metadata"])
		}

		apply(http.StatusOK, "two", manifest+"  deletionPolicy: Orphan\n")
	}
}

// TestOrderOfKeys: clients that write a free-form block with its keys in different orders do not make new generations
// in alternation.
func TestOrderOfKeys(t *testing.T) {
	s := startServer(t)
	release := func(values string) string {
		return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"r"},"spec":{"clusterRef":{"name":"c"},` +
			`"kubeconfigSecretRef":{"name":"k"},"chart":{"repository":"https://charts.example.com","chart":"web","values":` + values + `}}}`
	}

	created := s.mustCall(t, http.StatusCreated, http.MethodPost, releases+"?fieldManager=one", "application/json", release(`{"b":{"d":1,"c":2},"a":3}`))
	first := versionsOf(t, created)

	// One that writes the keys sorted, and one that puts back what it has.
	s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r?fieldManager=two", "application/apply-patch+yaml", release(`{"a":3,"b":{"c":2,"d":1}}`))

	applied := versionsOf(t, s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r?fieldManager=two", "application/apply-patch+yaml", release(`{"b":{"c":2,"d":1},"a":3}`)))
	if applied[0] != first[0] {
		t.Errorf("generation %v, was %v", applied[0], first[0])
	}

	for _, values := range []string{`{"a":3,"b":{"d":1,"c":2}}`, `{"b":{"c":2,"d":1},"a":3}`, `{"b":{"d":1,"c":2},"a":3}`} {
		patch := s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r?fieldManager=one", "application/json-patch+json",
			`[{"op":"replace","path":"/spec/chart/values","value":`+values+`}]`)
		if again := versionsOf(t, patch); again != applied {
			t.Errorf("%s: generation and resource version %v, were %v", values, again, applied)
		}
	}

	changed := s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r", "application/json-patch+json", `[{"op":"replace","path":"/spec/chart/values/a","value":4}]`)
	if versionsOf(t, changed)[0] == first[0] {
		t.Error("another value is no new generation")
	}
}

// TestSameWriteLaterWritesNothing: an identical write, by whatever verb, makes no new version. Field managers have
// times in whole seconds, so the second write has to happen in another second.
func TestSameWriteLaterWritesNothing(t *testing.T) {
	s := startServer(t)

	const manifest = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniKubeconfigExport","metadata":{"name":"a","finalizers":["example.com/keep"]},
		"spec":{"clusterRef":{"name":"production"},"targetSecretRef":{"name":"kubeconfig"},"serviceAccount":{"user":"ci","groups":["ci"]},"ttl":"24h"}}`

	one := exports + "/a?fieldManager=one"
	s.mustCall(t, http.StatusCreated, http.MethodPatch, one, "application/apply-patch+yaml", manifest)

	writes := []struct{ name, method, path, mediaType, body string }{
		{"apply", http.MethodPatch, one, "application/apply-patch+yaml", manifest},
		{"merge patch", http.MethodPatch, one, "application/merge-patch+json", `{"spec":{"ttl":"48h"}}`},
		{"JSON patch", http.MethodPatch, one, "application/json-patch+json", `[{"op":"replace","path":"/spec/ttl","value":"48h"}]`},
		{"strategic merge patch", http.MethodPatch, one, "application/strategic-merge-patch+json", `{"spec":{"ttl":"48h"}}`},
		{"strategic merge patch with a list", http.MethodPatch, one, "application/strategic-merge-patch+json", `{"metadata":{"finalizers":["example.com/keep"]}}`},
		{"status", http.MethodPatch, exports + "/a/status?fieldManager=one", "application/merge-patch+json", `{"status":{"observedGeneration":1}}`},
	}

	for _, write := range writes {
		s.mustCall(t, http.StatusOK, write.method, write.path, write.mediaType, write.body)
		before := versionsOf(t, s.mustCall(t, http.StatusOK, write.method, write.path, write.mediaType, write.body))

		time.Sleep(1100 * time.Millisecond)

		if again := versionsOf(t, s.mustCall(t, http.StatusOK, write.method, write.path, write.mediaType, write.body)); again != before {
			t.Errorf("%s: generation and resource version %v, were %v", write.name, again, before)
		}
	}

	// A PUT of an object that was read has the kind and apiVersion of the answer.
	read := s.mustCall(t, http.StatusOK, http.MethodPut, one, "application/json", text(t, s.mustCall(t, http.StatusOK, http.MethodGet, exports+"/a", "", "")))

	time.Sleep(1100 * time.Millisecond)

	if again := versionsOf(t, s.mustCall(t, http.StatusOK, http.MethodPut, one, "application/json", text(t, read))); again != versionsOf(t, read) {
		t.Errorf("PUT: generation and resource version %v, were %v", again, versionsOf(t, read))
	}
}

// text is an object as a request has it.
func text(t *testing.T, object map[string]any) string {
	t.Helper()

	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	return string(encoded)
}

// TestListItemsHaveNoKind: only the list has kind and apiVersion, as with lists of Kubernetes' own kinds, whether it
// was read from the cache or from etcd.
func TestListItemsHaveNoKind(t *testing.T) {
	s := startServer(t)

	manifest := `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniKubeconfigExport","metadata":{"name":"a"},
		"spec":{"clusterRef":{"name":"production"},"targetSecretRef":{"name":"kubeconfig"},"serviceAccount":{"user":"ci","groups":["ci"]},"ttl":"24h"}}`
	s.mustCall(t, http.StatusCreated, http.MethodPost, exports, "application/json", manifest)

	for _, query := range []string{"", "?resourceVersion=0", "?limit=1"} {
		list := s.mustCall(t, http.StatusOK, http.MethodGet, exports+query, "", "")

		items, _ := list["items"].([]any)
		if query != "?resourceVersion=0" && len(items) != 1 {
			t.Errorf("%q: %d items", query, len(items))
		}

		for _, item := range items {
			if object := item.(map[string]any); object["kind"] != nil || object["apiVersion"] != nil {
				t.Errorf("%q: an item is a %v of %v", query, object["kind"], object["apiVersion"])
			}
		}
	}
}
