package apiserver_test

import (
	"encoding/json"
	"fmt"
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
		{"wrong type", clusters, wrongType, http.StatusUnprocessableEntity, `spec.connectionRef: Invalid value: "string": must be an object`},
		{"text where an object belongs", clusters, list, http.StatusUnprocessableEntity, "must be an object"},
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

// A kind's rules do not run while an object is being deleted. Without a separate limit a client could then store an
// object that cannot be decoded again, and nobody could list the kind.
func TestNestingIsBoundedWhileBeingDeleted(t *testing.T) {
	s := startServer(t)
	body := strings.Replace(clusterJSON("going"), `{"name":"going"}`, `{"name":"going","finalizers":["example.com/wait"],"annotations":{"omni.texashpc.com/confirm-deletion":"going"}}`, 1)

	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json", body)
	s.mustCall(t, http.StatusOK, http.MethodDelete, clusters+"/going", "application/json", "")

	// What is deeper than a body may be is refused before the object is looked at.
	for levels, want := range map[int]int{
		300: http.StatusUnprocessableEntity, 980: http.StatusUnprocessableEntity,
		9000: http.StatusRequestEntityTooLarge, 9985: http.StatusRequestEntityTooLarge, 9990: http.StatusRequestEntityTooLarge,
	} {
		nested := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)

		answer := s.mustCall(t, want, http.MethodPatch, clusters+"/going", "application/json-patch+json",
			`[{"op":"replace","path":"/spec/kubernetes/manifests/0/inline/0","value":`+nested+`}]`)
		if message, _ := answer["message"].(string); len(message) > 1000 || !strings.Contains(message, "spec") && want == http.StatusUnprocessableEntity {
			t.Errorf("%d levels: %.2000s", levels, message)
		}
	}

	if status, answer := s.get(t, clusters, "application/json"); status != http.StatusOK {
		t.Errorf("list: status %d: %s", status, answer)
	}

	s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/going", "application/merge-patch+json", `{"metadata":{"finalizers":null}}`)
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

	if spec["suspend"] != false {
		t.Error("the status subresource wrote the spec")
	}

	if status["observedGeneration"] != float64(2) || object["metadata"].(map[string]any)["generation"] != float64(2) {
		t.Errorf("generation %v, observed %v, want 2 and 2", object["metadata"].(map[string]any)["generation"], status["observedGeneration"])
	}
}

// TestRefusedApply: no refusal of an apply to an object that exists is one that Flux answers with force: true by deleting the object: 409,
// 422 and the word immutable.
func TestRefusedApply(t *testing.T) {
	s := startServer(t)
	apply := func(want int, name, from, to string) string {
		manifest := strings.Replace(clusterJSON(name), from, to, 1)
		answer := s.mustCall(t, want, http.MethodPatch, clusters+"/"+name+"?fieldManager=one&force=true&dryRun=All", applyBody, manifest)

		return fmt.Sprint(answer["reason"], " ", answer["message"])
	}

	s.mustCall(t, http.StatusCreated, http.MethodPatch, clusters+"/there?fieldManager=one", applyBody, clusterJSON("there"))

	for name, test := range map[string]struct{ from, to, says string }{
		"rule":                      {`"v1.11.2"`, `"1.11.x"`, "spec.talos.version"},
		"immutable field":           {`"spec":{`, `"spec":{"clusterName":"other",`, "field is unchangeable: "},
		"value of a wrong type":     {`"spec":{`, `"spec":{"suspend":"yes",`, "spec.suspend"},
		"unknown field":             {`"spec":{`, `"spec":{"nonsense":1,`, "spec.nonsense"},
		"UID of another object":     {`{"name":"there"`, `{"name":"there","uid":"u"`, "metadata.uid"},
		"version of another object": {`{"name":"there"`, `{"name":"there","resourceVersion":"1"`, "remove metadata.resourceVersion from the manifest"},
	} {
		if text := apply(http.StatusBadRequest, "there", test.from, test.to); !strings.HasPrefix(text, "BadRequest ") ||
			!strings.Contains(text, test.says) || strings.Contains(text, "immutable") {
			t.Errorf("%s: %s", name, text)
		}
	}

	apply(http.StatusUnprocessableEntity, "absent", `"v1.11.2"`, `"1.11.x"`)
}

// TestServerSideApplyNumbers: server-side apply decodes 64-bit integers as integers and other numbers as floats. It
// does so in the whole object, whatever fields the request has.
func TestServerSideApplyNumbers(t *testing.T) {
	const apply = "application/apply-patch+yaml"

	s := startServer(t)

	for i, test := range []struct{ written, stored string }{
		{"1048576", "1048576"},
		{"9007199254740993", "9007199254740993"},
		{"9223372036854775807", "9223372036854775807"},
		{"-9223372036854775808", "-9223372036854775808"},
		{"9223372036854775809", "9223372036854776000"},
		{"18446744073709551615", "18446744073709552000"},
		{"-9223372036854775809", "-9223372036854776000"},
		{"123456789012345678901234567890", "1.2345678901234568e+29"},
		{"1.0", "1"},
		{"0.1", "0.1"},
		{`"1.0"`, `"1.0"`},
		{`"9223372036854775809"`, `"9223372036854775809"`},
	} {
		check := func(name, after string) {
			t.Helper()

			_, body := s.get(t, clusters+"/"+name, "application/json")
			if !strings.Contains(string(body), `"value":`+test.stored+`}`) {
				t.Errorf("%s after %s: %s", test.written, after, body)
			}
		}

		name := fmt.Sprintf("applied-%d", i)
		manifest := `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: ` + name + `}
spec:
  connectionRef: {name: main}
  kubernetes: {version: v1.34.1, manifests: [{name: numbers, inline: [{kind: Made, value: ` + test.written + `}]}]}
  talos: {version: v1.11.2}
`
		s.mustCall(t, http.StatusCreated, http.MethodPatch, clusters+"/"+name+"?fieldManager=one", apply, manifest)
		check(name, "server-side apply")

		name = fmt.Sprintf("created-%d", i)
		created := strings.Replace(clusterJSON(name), numbers, `{"kind":"Made","value":`+test.written+`}`, 1)
		s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json", created)
		s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/"+name+"?fieldManager=two", apply,
			"apiVersion: omni.texashpc.com/v1alpha1\nkind: OmniCluster\nmetadata: {name: "+name+", labels: {a: b}}\n")
		check(name, "server-side apply of a label")

		name = fmt.Sprintf("patched-%d", i)
		created = strings.Replace(clusterJSON(name), numbers, `{"kind":"Made","value":`+test.written+`}`, 1)
		s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json", created)
		s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/"+name, "application/strategic-merge-patch+json", `{"metadata":{"finalizers":["example.com/a"]}}`)
		check(name, "strategic merge patch of a list that is merged")
	}
}
