package apiserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// owning is an entry of managedFields whose fields are nested so many levels deep. The library writes null as {},
// which is one level more than the client sent.
func owning(levels int, end string) string {
	return `{"manager":"x","operation":"Update","apiVersion":"omni.texashpc.com/v1alpha1","fieldsType":"FieldsV1","fieldsV1":` +
		strings.Repeat(`{"f:a":`, levels) + end + strings.Repeat("}", levels) + "}"
}

// ownedDeeply is an OmniCluster with such an entry, at a resource version unless that is empty.
func ownedDeeply(name, version string, levels int, end string) string {
	return strings.Replace(clusterJSON(name), `"metadata":{`,
		`"metadata":{"resourceVersion":"`+version+`","managedFields":[`+owning(1, "{}")+","+strings.Replace(owning(levels, end), `"x"`, `"y"`, 1)+`],`, 1)
}

// TestDeepFieldOwnershipIsRefused: managedFields come from clients, and fields that the kind does not have stay in them.
// JSON has a limit of 10,000 levels for whoever reads it. Stored, an object near it could not be read again, or not
// inside of a list, and then nobody could list or watch the kind.
func TestDeepFieldOwnershipIsRefused(t *testing.T) {
	foreigntest.Sequential(t)

	s := startServer(t)
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, clusterJSON("one"))

	// A JSON patch with this makes the object deeper than any request was.
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, ownedDeeply("copied", "", 150, "{}"))
	copied := `[{"op":"copy","from":"/metadata/managedFields/1/fieldsV1","path":"/metadata/managedFields/1/fieldsV1` + strings.Repeat("/f:a", 149) + `/f:b"}]`

	for _, levels := range []int{9_996, 9_990, 5_000, 980, 300} {
		for _, end := range []string{"null", "{}"} {
			for _, request := range s.owningRequests(t, levels, end) {
				t.Run(fmt.Sprintf("%d %s %s %s", levels, end, request.method, request.contentType+request.path[len(clusters):]), func(t *testing.T) {
					foreigntest.WantAllocated(t, bodyMemory, func() {
						status, answer := s.call(t, request.method, request.path, request.contentType, request.body)
						wantRefusedForDepth(t, request.path, status, answer)
					})
					s.wantReadable(t)
				})
			}
		}
	}

	for _, path := range []string{clusters + "/copied", clusters + "/copied/status"} {
		status, answer := s.call(t, http.MethodPatch, path, patchBody, copied)
		wantRefusedForDepth(t, path, status, answer)
		s.wantReadable(t)
	}
}

type ownRequest struct{ method, path, contentType, body string }

// owningRequests are the ways to write managedFields.
func (s *server) owningRequests(t *testing.T, levels int, end string) []ownRequest {
	t.Helper()

	_, stored := s.call(t, http.MethodGet, clusters+"/one", jsonBody, "")
	version := stored["metadata"].(map[string]any)["resourceVersion"].(string)
	whole := ownedDeeply("one", version, levels, end)
	patch := `{"metadata":{"managedFields":[` + owning(1, "{}") + "," + strings.Replace(owning(levels, end), `"x"`, `"y"`, 1) + `]}}`
	operations := `[{"op":"add","path":"/metadata/managedFields/0","value":` + owning(levels, end) + `}]`

	requests := []ownRequest{{http.MethodPost, clusters, jsonBody, ownedDeeply("new", "", levels, end)}}
	for _, path := range []string{clusters + "/one", clusters + "/one/status"} {
		requests = append(requests,
			ownRequest{http.MethodPut, path, jsonBody, whole},
			ownRequest{http.MethodPatch, path, mergeBody, patch},
			ownRequest{http.MethodPatch, path, "application/strategic-merge-patch+json", patch},
			ownRequest{http.MethodPatch, path, patchBody, operations},
			ownRequest{http.MethodPatch, path + "?fieldManager=a", applyBody, whole})
	}

	return requests
}

// wantRefusedForDepth: of a write of the status the library ignores managedFields, unless it is an apply.
func wantRefusedForDepth(t *testing.T, path string, status int, answer map[string]any) {
	t.Helper()

	if status == http.StatusOK && strings.HasSuffix(path, "/status") {
		return
	}

	if status < 400 || status > 499 {
		t.Errorf("status %d: %.300s", status, answer["message"])
	}
}

// wantReadable lists the kind from the cache and from etcd. Nothing in it is near the limit.
func (s *server) wantReadable(t *testing.T) {
	t.Helper()

	for _, path := range []string{clusters + "?resourceVersion=0", clusters, "/readyz/watch-caches"} {
		status, body := s.get(t, path, "")
		if depth := foreign.DepthOfJSON(body); status != http.StatusOK || depth > 300 {
			t.Fatalf("%s: status %d, %d levels: %.300s", path, status, depth, body)
		}
	}
}

// TestOwnershipOfTheDeepestSpec: what a spec may be, can be owned by an apply and sent back by an update.
func TestOwnershipOfTheDeepestSpec(t *testing.T) {
	s := startServer(t)

	block := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"a":` + strings.Repeat(`{"a":`, 126) + "{}" + strings.Repeat("}", 126) + "}"
	body := strings.Replace(clusterJSON("deepest"), numbers, block, 1)

	applied := s.mustCall(t, http.StatusCreated, http.MethodPatch, clusters+"/deepest?fieldManager=a", applyBody, body)
	applied["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	again := maps.Clone(applied)
	delete(again, "status")

	sent, err := json.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}

	s.mustCall(t, http.StatusOK, http.MethodPut, clusters+"/deepest", jsonBody, string(sent))
	s.wantReadable(t)
}
