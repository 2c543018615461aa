package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestPolicyGuardAsksClusters: a policy whose status says nothing yet is not deleted while a cluster of its namespace
// says that it holds changes.
func TestPolicyGuardAsksClusters(t *testing.T) {
	const (
		held     = `{"status":{"rollout":{"governed":true,"policy":"fleet","state":"Held"}}}`
		policies = "/apis/omni.texashpc.com/v1alpha1/namespaces/%/omnirolloutpolicies"
		policy   = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniRolloutPolicy","metadata":{"name":"fleet"},"spec":{"clusterSelector":{},"stages":[{"name":"all"}]}}`
	)

	s := startServer(t)
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, clusterJSON("one"))
	s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/one/status", mergeBody, held)

	for namespace, want := range map[string]int{"default": http.StatusForbidden, "elsewhere": http.StatusOK} {
		path := strings.Replace(policies, "%", namespace, 1)
		s.mustCall(t, http.StatusCreated, http.MethodPost, path, jsonBody, policy)

		for _, way := range []string{"/fleet", ""} {
			status, answer := s.call(t, http.MethodDelete, path+way, jsonBody, "")
			if status != want {
				t.Errorf("delete %s%s: status %d, want %d: %v", path, way, status, want, answer["message"])
			}
		}
	}
}
