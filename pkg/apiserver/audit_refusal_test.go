package apiserver_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

// TestAuditOfRefusals: the audit log has the message of a refusal at every level, and the message nothing of what the user
// wrote where secrets may be.
func TestAuditOfRefusals(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	s := startServerWith(t, func(config *apiserver.Config) {
		options := genericoptions.NewAuditOptions()
		options.LogOptions.Path = log

		if err := apiserver.ApplyAudit(options, &config.Generic.Config); err != nil {
			t.Fatal(err)
		}
	})

	const (
		base     = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/"
		asJSON   = "application/json"
		apply    = "application/apply-patch+yaml"
		cluster  = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"refused"},"spec":{"connectionRef":{"name":"main"},"kubernetes":{"version":"v1.34.1"},"talos":{"version":"v1.11.2"},"patches":[%s]}}`
		connects = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniConnection","metadata":{"name":"refused"},"spec":{"serviceAccountSecretRef":{"name":"key"},"endpoint":"%s"}}`
		release  = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"refused"},"spec":{"values":%s}}`
	)

	for _, request := range []struct{ name, method, path, contentType, body string }{
		{"a patch that Talos does not know", http.MethodPost, "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":{"machine":{"env":"`+inline+`"}}}`)},
		{"a patch with an unknown field", http.MethodPost, "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":{"machine":{"token":["`+inline+`"]}}}`)},
		{"a patch that is a text", http.MethodPost, "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":"`+inline+`"}`)},
		{"a patch whose text ends", http.MethodPost, "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":{"machine":{"token":"`+inline+`}`)},
		{"an applied patch with broken YAML", http.MethodPatch, "omniclusters/refused?fieldManager=f", apply, "apiVersion: omni.texashpc.com/v1alpha1\nkind: OmniCluster\nspec:\n  patches:\n  - inline: {token: " + inline + "\n"},
		{"an applied patch with a key twice", http.MethodPatch, "omniclusters/refused?fieldManager=f", apply,
			"apiVersion: omni.texashpc.com/v1alpha1\nkind: OmniCluster\nmetadata: {name: refused}\nspec:\n  patches:\n  - inline:\n      token: a\n      token: " + inline + "\n"},
		{"credentials in an endpoint", http.MethodPost, "omniconnections", asJSON, fmt.Sprintf(connects, "https://user:"+inline+"@omni.example.com")},
		{"an endpoint that is no URL", http.MethodPost, "omniconnections", asJSON, fmt.Sprintf(connects, "https://user:"+inline+"@omni.example.com:port%zz")},
		{"values that are a text", http.MethodPost, "omnihelmreleases", asJSON, fmt.Sprintf(release, `"`+inline+`"`)},
		{"values with a number too large", http.MethodPost, "omnihelmreleases", asJSON, fmt.Sprintf(release, `{"a":1e9999,"password":"`+inline+`"}`)},
	} {
		status, object := s.call(t, request.method, base+request.path, request.contentType, request.body)
		answer := fmt.Sprint(object)

		if status < http.StatusBadRequest || status >= http.StatusInternalServerError {
			t.Errorf("%s: status %d: %s", request.name, status, answer)
		}

		if strings.Contains(answer, inline) {
			t.Errorf("%s: the answer repeats it: %s", request.name, answer)
		}
	}

	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(string(text), `"reason":"Invalid"`) {
		t.Errorf("no refusal is in the log: %s", text)
	}

	if strings.Contains(string(text), inline) {
		t.Errorf("the log has what was written: %s", text)
	}
}
