package apiserver_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

const (
	workers       = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omniworkers"
	controlPlanes = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omnicontrolplanes"
	// inline is a value in a spec, such as a secret that a user wrote there.
	inline = "inline-value-of-the-audit-test"
)

// TestAuditLevels sends every kind of request at every audit level. At levels with bodies, the log has all that was
// written and read; at levels without bodies, it has none of it. No request is missing at any level.
func TestAuditLevels(t *testing.T) {
	tests := []struct {
		level             string
		requests, answers bool
	}{
		{"Metadata", false, false},
		{"Request", true, false},
		{"RequestResponse", true, true},
	}
	for _, test := range tests {
		t.Run(test.level, func(t *testing.T) {
			dir := t.TempDir()
			policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")

			if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n"+
				"rules: [{level: "+test.level+"}]\n"), 0o600); err != nil {
				t.Fatal(err)
			}

			s := startServer(t, withConfig(func(config *apiserver.Config) {
				options := genericoptions.NewAuditOptions()
				options.PolicyFile, options.LogOptions.Path = policy, log

				if err := apiserver.ApplyAudit(options, &config.Generic.Config); err != nil {
					t.Fatal(err)
				}
			}))
			s.everyRequest(t)

			for request, event := range auditEvents(t, log) {
				checkBodies(t, request, event, test.requests, test.answers)
			}
		})
	}
}

// audited are the requests of everyRequest that have a body, and those that have an answer with an object.
var audited = map[string]struct{ request, answer bool }{
	"create omniclusters":          {true, true},
	"update omniclusters":          {true, true},
	"patch omniclusters":           {true, true},
	"patch omniclusters/status":    {true, true},
	"get omniclusters":             {false, true},
	"list omniclusters":            {false, true},
	"get omniclusters/template":    {false, false}, // a text
	"patch omniworkers/scale":      {true, true},
	"delete omniworkers":           {true, true},
	"deletecollection omniworkers": {true, true},
	"create omnicontrolplanes":     {true, true},
	"create omniworkers":           {true, true},
	"get omniworkers/scale":        {false, true},
	"list omnicontrolplanes":       {false, true}, // as a table
}

// everyRequest sends one of each.
func (s *server) everyRequest(t *testing.T) {
	t.Helper()

	const asJSON, merge, apply = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"

	body := strings.Replace(clusterJSON("one"), `"spec":{`, `"spec":{"patches":[{"name":"p","inline":{"machine":{"env":{"A":"`+inline+`"}}}}],`, 1)
	child := func(kind, spec string) string {
		return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"` + kind + `","metadata":{"name":"x"},"spec":{"clusterRef":{"name":"one"},` + spec + `}}`
	}

	made := s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, body)
	whole, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}

	class := `"machineClass":{"name":"m","size":1}`
	for _, call := range []struct {
		want                            int
		method, path, contentType, body string
	}{
		{http.StatusOK, http.MethodPut, clusters + "/one", asJSON, string(whole)},
		{http.StatusOK, http.MethodPatch, clusters + "/one", merge, `{"metadata":{"labels":{"a":"b"}}}`},
		{http.StatusOK, http.MethodPatch, clusters + "/one/status?fieldManager=f", apply,
			`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"one"},"status":{"observedGeneration":1}}`},
		{http.StatusCreated, http.MethodPost, controlPlanes, asJSON, child("OmniControlPlane", class)},
		{http.StatusCreated, http.MethodPost, workers, asJSON, child("OmniWorkers", class)},
		{http.StatusOK, http.MethodPatch, workers + "/x/scale", merge, `{"spec":{"replicas":2}}`},
		{http.StatusOK, http.MethodGet, workers + "/x/scale", asJSON, ""},
	} {
		s.mustCall(t, call.want, call.method, call.path, call.contentType, call.body)
	}

	for _, get := range []struct{ path, accept string }{
		{clusters + "/one", ""}, {clusters, ""}, {clusters + "/one/template", "application/yaml"},
		{controlPlanes, "application/json;as=Table;v=v1;g=meta.k8s.io"},
	} {
		if status, answer := s.get(t, get.path, get.accept); status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", get.path, status, answer)
		}
	}

	s.mustCall(t, http.StatusOK, http.MethodDelete, workers+"/x", asJSON, `{"kind":"DeleteOptions","apiVersion":"v1"}`)
	s.mustCall(t, http.StatusOK, http.MethodDelete, workers, asJSON, `{"kind":"DeleteOptions","apiVersion":"v1"}`)
}

// auditEvents are the entries by request, each as in audited; all of those have to be there.
func auditEvents(t *testing.T, path string) map[string]auditv1.Event {
	t.Helper()

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	events := map[string]auditv1.Event{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)

	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}

		if event.ObjectRef == nil {
			continue
		}

		request := event.Verb + " " + event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			request += "/" + event.ObjectRef.Subresource
		}

		events[request] = event
	}

	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}

	for request := range audited {
		if _, there := events[request]; !there {
			t.Errorf("no entry of %q", request)
		}
	}

	return events
}

func checkBodies(t *testing.T, request string, event auditv1.Event, requests, answers bool) {
	t.Helper()

	want, known := audited[request]
	if !known {
		return // the server's own
	}

	if got := event.RequestObject != nil; got != (requests && want.request) {
		t.Errorf("%s: has the body of the request: %t", request, got)
	}

	if got := event.ResponseObject != nil; got != (answers && want.answer) {
		t.Errorf("%s: has the answer: %t", request, got)
	}

	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}

	shown := strings.Contains(string(text), inline)
	if may := requests && want.request || answers && want.answer; shown && !may {
		t.Errorf("%s: the entry has content: %s", request, text)
	}

	if request == "create omniclusters" && shown != requests {
		t.Errorf("the created spec is in the entry: %t", shown)
	}
}
