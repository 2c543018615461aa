package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestCreatorOwnsItsFalse: a client that sets a field to false owns the field, as with a custom resource; nobody owns
// a false that no client set, although the stored object shows it.
func TestCreatorOwnsItsFalse(t *testing.T) {
	s := startServer(t)

	const written = `{"suspend":false,"features":{"enableWorkloadProxy":false},"nonsense":false,`

	for name, test := range map[string]struct {
		contentType, spec string
		suspend, feature  int
	}{
		"written":       {jsonBody, written, http.StatusConflict, http.StatusConflict},
		"in-yaml":       {yamlBody, written, http.StatusConflict, http.StatusConflict},
		"yaml-words":    {yamlBody, `{"suspend":no,"features":{"enableWorkloadProxy":False},`, http.StatusConflict, http.StatusConflict},
		"one":           {jsonBody, `{"suspend":false,`, http.StatusConflict, http.StatusOK},
		"nobody":        {jsonBody, `{`, http.StatusOK, http.StatusOK},
		"somewhere":     {jsonBody, `{"adopt":false,"deletePolicy":{"orphan":false},`, http.StatusOK, http.StatusOK},
		"true-as-ever":  {jsonBody, `{"suspend":true,"features":{"enableWorkloadProxy":true},`, http.StatusOK, http.StatusOK},
		"empty-structs": {jsonBody, `{"features":{},`, http.StatusOK, http.StatusOK},
	} {
		created := s.mustCall(t, http.StatusCreated, http.MethodPost, clusters+"?fieldManager=one", test.contentType,
			strings.Replace(clusterJSON(name), `"spec":{`, `"spec":`+test.spec, 1))

		if fields := created["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any); fields["manager"] != "one" ||
			fields["fieldsV1"].(map[string]any)["f:spec"].(map[string]any)["f:nonsense"] != nil {
			t.Errorf("%s: %v", name, fields)
		}

		for spec, want := range map[string]int{`{"suspend":true}`: test.suspend, `{"features":{"enableWorkloadProxy":true}}`: test.feature} {
			status, answer := s.call(t, http.MethodPatch, clusters+"/"+name+"?fieldManager=two&dryRun=All", applyBody,
				`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"`+name+`"},"spec":`+spec+`}`)
			if status != want {
				t.Errorf("%s, %s: status %d, want %d: %v", name, spec, status, want, answer["message"])
			}
		}
	}

	// Who owns it may still change it.
	s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/written?fieldManager=one", mergeBody, `{"spec":{"suspend":true}}`)
	s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/written?fieldManager=two&force=true", applyBody,
		`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"written"},"spec":{"suspend":false}}`)
}
