package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
)

const (
	strategicBody = "application/strategic-merge-patch+json"
	releases      = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/omnihelmreleases"
)

// releaseJSON is an OmniHelmRelease with values.
func releaseJSON(name, values string) string {
	return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"` + name + `","finalizers":["example.com/a"]},"spec":{"clusterRef":{"name":"c"},` +
		`"kubeconfigSecretRef":{"name":"k"},"chart":{"repository":"https://charts.example.com","chart":"web","values":` + values + `}}}`
}

// TestStrategicMergePatch: what kubectl patch sends changes a free-form block as a merge patch does.
func TestStrategicMergePatch(t *testing.T) {
	s := startServer(t)
	s.mustCall(t, http.StatusCreated, http.MethodPost, releases, jsonBody, releaseJSON("r", `{"image":{"tag":1.10,"pull":"Always"},"list":[{"name":"a"},{"name":"b"}],"big":18446744073709551617}`))

	for _, test := range []struct{ name, patch, want string }{
		{"nested member", `{"spec":{"chart":{"values":{"image":{"tag":1.20}}}}}`, `"image":{"pull":"Always","tag":1.20}`},
		{"new nested map", `{"spec":{"chart":{"values":{"a":{"b":{"c":1}}}}}}`, `"a":{"b":{"c":1}}`},
		{"removed member", `{"spec":{"chart":{"values":{"a":null}}}}`, `"values":{"big":18446744073709551617,"image"`},
		{"list, whole", `{"spec":{"chart":{"values":{"list":[{"name":"c","$patch":"delete"}]}}}}`, `"list":[{"$patch":"delete","name":"c"}]`},
		{"labels beside", `{"metadata":{"labels":{"a":"b"}},"spec":{"chart":{"values":{"image":{"pull":"Never"}}}}}`, `"image":{"pull":"Never","tag":1.20}`},
		{"number in another field", `{"spec":{"chart":{"version":"1.2.3"}}}`, `"big":18446744073709551617`},
		{"directive beside no free-form block", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/b"],"finalizers":["example.com/c"]}}`, `"finalizers":["example.com/c","example.com/a"]`},
	} {
		s.mustCall(t, http.StatusOK, http.MethodPatch, releases+"/r?fieldValidation=Strict", strategicBody, test.patch)

		if _, body := s.get(t, releases+"/r", jsonBody); !strings.Contains(strings.NewReplacer(" ", "", "\n", "").Replace(string(body)), test.want) {
			t.Errorf("%s: want %s in %s", test.name, test.want, body)
		}
	}
}

// A patch that cannot be applied is the client's mistake.
func TestBadStrategicMergePatch(t *testing.T) {
	s := startServer(t)
	s.mustCall(t, http.StatusCreated, http.MethodPost, releases, jsonBody, releaseJSON("r", `{"a":{"b":{"c":1}}}`))

	for patch, want := range map[string]string{
		`{"spec":{"chart":{"values":{"$patch":"merge","a":{"b":{"d":1}}}}}}`:   "use a merge patch",
		`{"spec":{"chart":{"values":{"a":{"b":{"$patch":"replace","d":1}}}}}}`: "use a merge patch",
		`{"spec":{"chart":{"values":[1]}}}`:                                    "must be an object",
	} {
		status, answer := s.call(t, http.MethodPatch, releases+"/r", strategicBody, patch)
		if message, _ := answer["message"].(string); status < 400 || status >= 500 || !strings.Contains(message, want) {
			t.Errorf("%s: status %d: %.300s", patch, status, message)
		}
	}
}
