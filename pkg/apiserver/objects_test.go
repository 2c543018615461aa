package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const clusters = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omniclusters"

// clusterJSON is an OmniCluster with numbers that floating point would change.
func clusterJSON(name string) string {
	return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"` + name + `"},` +
		`"spec":{"connectionRef":{"name":"main"},"kubernetes":{"version":"v1.34.1","manifests":[{"name":"numbers",` +
		`"inline":[` + numbers + `]}]},"talos":{"version":"v1.11.2"}}}`
}

// numbers has its keys in order, because a merge patch puts them in order.
const numbers = `{"apiVersion":"v1","big":9007199254740993,"exponent":1e3,"float":1.0,"kind":"ConfigMap",` +
	`"metadata":{"name":"n"},"text":"1.0","whole":1048576}`

// call sends a body and returns the status and the answer.
func (s *server) call(t *testing.T, method, path, contentType, body string) (int, map[string]any) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Content-Type", contentType)

	status, answer := s.do(t, request)

	var object map[string]any
	if err := json.Unmarshal(answer, &object); err != nil {
		t.Fatalf("%s %s: status %d: %s", method, path, status, answer)
	}

	return status, object
}

func (s *server) mustCall(t *testing.T, want int, method, path, contentType, body string) map[string]any {
	t.Helper()

	status, object := s.call(t, method, path, contentType, body)
	if status != want {
		t.Fatalf("%s %s: status %d, want %d: %v", method, path, status, want, object["message"])
	}

	return object
}

func TestFreeFormNumbersStayAsWritten(t *testing.T) {
	s := startServer(t)

	check := func(step string) {
		t.Helper()

		_, body := s.get(t, clusters+"/numbers", "application/json")
		if !strings.Contains(string(body), `[`+numbers+`]`) {
			t.Errorf("after %s: %s", step, body)
		}
	}

	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json", clusterJSON("numbers"))
	check("create")

	s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/numbers", "application/merge-patch+json",
		`{"spec":{"suspend":true,"kubernetes":{"manifests":[{"name":"numbers","inline":[`+numbers+`]}]}}}`)
	check("merge patch")

	s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/numbers", "application/json-patch+json",
		`[{"op":"replace","path":"/spec/suspend","value":false},`+
			`{"op":"replace","path":"/spec/kubernetes/manifests/0/inline/0","value":`+numbers+`}]`)
	check("JSON patch")
}

func TestFieldValidation(t *testing.T) {
	s := startServer(t)

	unknown := strings.Replace(clusterJSON("strict"), `"spec":{`, `"spec":{"nonsense":1,`, 1)
	wrongType := strings.Replace(clusterJSON("strict"), `"connectionRef":{"name":"main"}`, `"connectionRef":"main"`, 1)
	list := strings.Replace(clusterJSON("strict"), `[`+numbers+`]`, `["text"]`, 1)

	tests := []struct {
		name, path, body string
		status           int
		message          string
	}{
		{"unknown field, strict", clusters + "?fieldValidation=Strict", unknown, http.StatusBadRequest, `unknown field "spec.nonsense"`},
		{"wrong type", clusters, wrongType, http.StatusBadRequest, "connectionRef"},
		{"text where an object belongs", clusters, list, http.StatusBadRequest, "must be an object"},
		{"unknown field, dropped", clusters + "?dryRun=All", unknown, http.StatusCreated, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer := s.mustCall(t, test.status, http.MethodPost, test.path, "application/json", test.body)
			if message, _ := answer["message"].(string); !strings.Contains(message, test.message) {
				t.Errorf("message %q, want %q in it", message, test.message)
			}
		})
	}

	if status, _ := s.get(t, clusters+"/strict", ""); status != http.StatusNotFound {
		t.Errorf("a refused or dry-run create left something: status %d", status)
	}
}

func TestRequestSize(t *testing.T) {
	s := startServer(t)

	large := strings.Replace(clusterJSON("large"), `{"name":"large"}`,
		`{"name":"large","annotations":{"a":"`+strings.Repeat("x", 2<<20)+`"}}`, 1)

	answer := s.mustCall(t, http.StatusRequestEntityTooLarge, http.MethodPost, clusters, "application/json", large)
	if answer["message"] != "Request entity too large: limit is 1048576" {
		t.Errorf("message %q", answer["message"])
	}
}

func TestServerSideApply(t *testing.T) {
	const apply = "application/apply-patch+yaml"

	s := startServer(t)
	path := clusters + "/applied"

	s.mustCall(t, http.StatusCreated, http.MethodPatch, path+"?fieldManager=one", apply, clusterJSON("applied"))

	// A second manager owns one more manifest of the list map, and nothing of the first.
	s.mustCall(t, http.StatusOK, http.MethodPatch, path+"?fieldManager=two", apply,
		`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"applied"},`+
			`"spec":{"kubernetes":{"manifests":[{"name":"more","inline":[{"kind":"Namespace"}]}]}}}`)

	object := s.mustCall(t, http.StatusOK, http.MethodPatch, path+"/status?fieldManager=controller", apply,
		`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"applied"},`+
			`"spec":{"suspend":true},"status":{"observedGeneration":2,`+
			`"omni":{"machineSets":[{"name":"control-planes","ready":true}]}}}`)

	spec, status := object["spec"].(map[string]any), object["status"].(map[string]any)

	var names []any
	for _, manifest := range spec["kubernetes"].(map[string]any)["manifests"].([]any) {
		names = append(names, manifest.(map[string]any)["name"])
	}

	if diff := cmp.Diff([]any{"numbers", "more"}, names); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}

	if _, suspended := spec["suspend"]; suspended {
		t.Error("the status subresource wrote the spec")
	}

	if status["observedGeneration"] != float64(2) || object["metadata"].(map[string]any)["generation"] != float64(2) {
		t.Errorf("generation %v, observed %v, want 2 and 2", object["metadata"].(map[string]any)["generation"], status["observedGeneration"])
	}
}

func TestGenerateName(t *testing.T) {
	s := startServer(t)
	body := strings.Replace(clusterJSON("x"), `"metadata":{"name":"x"}`, `"metadata":{"generateName":"run-"}`, 1)

	object := s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json", body)
	if name, _ := object["metadata"].(map[string]any)["name"].(string); !strings.HasPrefix(name, "run-") || len(name) != len("run-")+5 {
		t.Errorf("name %q", name)
	}
}
