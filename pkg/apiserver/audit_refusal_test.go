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

// TestAuditOfRefusals: the audit log has the message of a refusal although it has no bodies, and the message nothing of what
// the user wrote where secrets may be.
func TestAuditOfRefusals(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	s := startServer(t, withConfig(func(config *apiserver.Config) {
		options := genericoptions.NewAuditOptions()
		options.LogOptions.Path = log

		if err := apiserver.ApplyAudit(options, &config.Generic.Config); err != nil {
			t.Fatal(err)
		}
	}))

	const (
		base     = "/apis/omni.texashpc.com/v1alpha1/namespaces/default/"
		asJSON   = "application/json"
		apply    = "application/apply-patch+yaml"
		cluster  = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"refused"},"spec":{"connectionRef":{"name":"main"},"kubernetes":{"version":"v1.34.1"},"talos":{"version":"v1.11.2"},"patches":[%s]}}`
		connects = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniConnection","metadata":{"name":"refused"},"spec":{"auth":{"serviceAccountSecretRef":{"name":"key"}},"endpoint":"%s"}}`
		release  = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"refused"},"spec":{"chart":{"values":%s}}}`
	)

	stored := strings.Replace(fmt.Sprintf(cluster, `{"name":"p","inline":{"machine":{"env":{"TOKEN":"`+inline+`"}}}}`), `"refused"`, `"stored"`, 1)
	s.mustCall(t, http.StatusCreated, http.MethodPost, base+"omniclusters", asJSON, stored)

	for _, request := range []struct{ name, path, contentType, body, want string }{
		{"a text where Talos wants a map", "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":{"machine":{"env":"`+inline+`"}}}`), "a value is of type str"},
		{"a list where Talos wants a text", "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":{"machine":{"token":["`+inline+`"]}}}`), "a value is of type seq"},
		{"a patch that is a text", "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":"`+inline+`"}`), "must be an object"},
		{"a patch whose text ends", "omniclusters", asJSON, fmt.Sprintf(cluster, `{"name":"p","inline":{"machine":{"token":"`+inline+`}`), "unexpected end of JSON"},
		{"an applied patch with broken YAML", "omniclusters/refused?fieldManager=f", apply, "spec:\n  patches:\n  - inline: {token: " + inline + "\n", "neither YAML nor JSON"},
		{"an applied patch with a key twice", "omniclusters/refused?fieldManager=f&fieldValidation=Strict", apply,
			"apiVersion: omni.texashpc.com/v1alpha1\nkind: OmniCluster\nmetadata: {name: refused}\nspec:\n  connectionRef: {name: main}\n  kubernetes: {version: v1.34.1}\n" +
				"  talos: {version: v1.11.2}\n  patches:\n  - name: p\n    inline: {machine: {token: " + inline + ", token: " + inline + "}}\n", "already set in map"},
		{"credentials in an endpoint", "omniconnections", asJSON, fmt.Sprintf(connects, "https://user:"+inline+"@omni.example.com"), "spec.endpoint: Invalid value: must have no user info"},
		{"an endpoint that is no URL", "omniconnections", asJSON, fmt.Sprintf(connects, "https://user:"+inline+"@omni.example.com:port%zz"), "spec.endpoint: Invalid value: must be a URL"},
		{"values that are a text", "omnihelmreleases", asJSON, fmt.Sprintf(release, `"`+inline+`"`), "must be an object"},
		{"a merge patch with a text for a boolean", "omniclusters/stored", mergeBody, `{"spec":{"suspend":"true"}}`, `spec.suspend: Invalid value: "string": must be true or false`},
		{"a merge patch with an unknown field", "omniclusters/stored?fieldValidation=Strict", mergeBody, `{"spec":{"suspnd":true}}`, `unknown field "spec.suspnd"`},
		{"a merge patch with a block that is a text", "omniclusters/stored", mergeBody, `{"spec":{"patches":[{"name":"p","inline":"` + inline + `"}]}}`, "write inline blocks, manifests and values as YAML fields"},
		{"a merge patch of the status", "omniclusters/stored/status", mergeBody, `{"status":{"observedGeneration":"x"}}`, `status.observedGeneration: Invalid value: "string": must be an integer`},
		{"a patch of kubectl with a text for a boolean", "omniclusters/stored", strategicBody, `{"spec":{"suspend":"true"}}`, `spec.suspend: Invalid value: "string": must be true or false`},
		{"a patch of kubectl with an unknown field", "omniclusters/stored?fieldValidation=Strict", strategicBody, `{"spec":{"suspnd":true}}`, `unknown field "spec.suspnd"`},
		{"a strategic patch with an unknown field", "omniclusters/stored?fieldValidation=Strict", strategicBody,
			`{"metadata":{"finalizers":["example.com/a"]},"spec":{"suspnd":true,"patches":[{"name":"p","inline":{"machine":{"token":"` + inline + `"}}}]}}`, `unknown field "spec.suspnd"`},
		{"a strategic patch with a text for a boolean", "omniclusters/stored", strategicBody,
			`{"metadata":{"finalizers":["example.com/a"]},"spec":{"suspend":"true","patches":[{"name":"p","inline":{"machine":{"token":"` + inline + `"}}}]}}`, `spec.suspend: Invalid value: "string": must be true or false`},
		{"a JSON patch with a text for a boolean", "omniclusters/stored", patchBody, `[{"op":"add","path":"/spec/suspend","value":"true"}]`, `spec.suspend: Invalid value: "string": must be true or false`},
		{"a JSON patch with an unknown field", "omniclusters/stored?fieldValidation=Strict", patchBody, `[{"op":"add","path":"/spec/suspnd","value":true}]`, `unknown field "spec.suspnd"`},
		{"a JSON patch with a member of its own", "omniclusters/stored?fieldValidation=Strict", patchBody, `[{"op":"add","path":"/spec/suspend","value":true,"why":"` + inline + `"}]`, `json patch unknown field "[0].why"`},
		{"an applied patch that is a text", "omniclusters/stored?fieldManager=f", apply, fmt.Sprintf(cluster, `{"name":"p","inline":"`+inline+`"}`), `spec.patches[0].inline: Invalid value: "string": must be an object: write inline blocks`},
		{"an applied patch that is a list", "omniclusters/stored?fieldManager=f", apply, fmt.Sprintf(cluster, `{"name":"p","inline":["`+inline+`"]}`), `spec.patches[0].inline: Invalid value: "array": must be an object`},
		{"applied patches that are a text", "omniclusters/new?fieldManager=f", apply, fmt.Sprintf(cluster, `"`+inline+`","`+inline+`"`), `spec.patches[0]: Invalid value: "string": must be an object`},
		{"an applied text for a boolean", "omniclusters/stored?fieldManager=f", apply, strings.Replace(fmt.Sprintf(cluster, ""), `"spec":{`, `"spec":{"suspend":"`+inline+`",`, 1), `spec.suspend: Invalid value: "string": must be true or false`},
		{"an applied list for a text", "omniclusters/stored?fieldManager=f", apply, strings.Replace(fmt.Sprintf(cluster, ""), `"main"`, `["`+inline+`"]`, 1), `spec.connectionRef.name: Invalid value: "array": must be a string`},
		{"an applied unknown field", "omniclusters/stored?fieldManager=f", apply, strings.Replace(fmt.Sprintf(cluster, ""), `"spec":{`, `"spec":{"suspnd":"`+inline+`",`, 1), ".spec.suspnd: field not declared in schema"},
		{"values with a number too large", "omnihelmreleases", asJSON, fmt.Sprintf(release, `{"a":1e9999,"password":"`+inline+`"}`), "1e9999"},
	} {
		method := http.MethodPost
		if request.contentType != asJSON {
			method = http.MethodPatch
		}

		status, object := s.call(t, method, base+request.path, request.contentType, request.body)
		answer := fmt.Sprint(object)

		if status < http.StatusBadRequest || status >= http.StatusInternalServerError || !strings.Contains(answer, request.want) {
			t.Errorf("%s: status %d, want %q: %s", request.name, status, request.want, answer)
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
