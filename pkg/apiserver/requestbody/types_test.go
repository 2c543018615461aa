package requestbody

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Values of a wrong type are named by field, with what belongs there, whatever the form of the write; a body without any is not refused.
func TestExplain(t *testing.T) {
	const (
		plain, merge, apply = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
		operations          = "application/json-patch+json"
	)

	b := newBodies(Budget)
	b.maxBytes = MaxBytes

	for name, test := range map[string]struct {
		resource, content, body string
		want                    []string
	}{
		"a text for a list":    {"omniworkers", merge, `{"spec":{"machines":"one"}}`, []string{`spec.machines: Invalid value: "string": must be a list`}},
		"an object for a list": {"omniworkers", plain, `{"spec":{"patches":{"name":"a"}}}`, []string{`spec.patches: Invalid value: "object": must be a list`}},
		"a list for a map":     {"omniworkers", plain, `{"spec":{"labels":["a"]}}`, []string{`spec.labels: Invalid value: "array": must be a map`}},
		"a text for an object": {"omniclusters", plain, `{"spec":{"talos":"v1.13.3"}}`, []string{`spec.talos: Invalid value: "string": must be an object`}},
		"numbers for texts": {"omniclusters", apply, "metadata:\n  labels: {tier: 1, prod: true}\nspec:\n  kubernetes: {version: 1.35}\n", []string{
			`metadata.labels[prod]: Invalid value: "boolean": must be a string: put it in quotes`,
			`metadata.labels[tier]: Invalid value: "integer": must be a string: put it in quotes`,
			`spec.kubernetes.version: Invalid value: "number": must be a string: put it in quotes`,
		}},
		"a text for a boolean":                  {"omniclusters", merge, `{"spec":{"suspend":"true"}}`, []string{`spec.suspend: Invalid value: "string": must be true or false: write it without quotes`}},
		"a text for a number":                   {"omnihelmreleases", merge, `{"spec":{"retries":"3"}}`, []string{`spec.retries: Invalid value: "string": must be an integer of 32 bits: write it without quotes`}},
		"a large number":                        {"omnihelmreleases", merge, `{"spec":{"retries":3000000000}}`, []string{`spec.retries: Invalid value: "integer": must be an integer of 32 bits`}},
		"a number for a time":                   {"omnirolloutpolicies", merge, `{"spec":{"freezes":[{"from":5}]}}`, []string{`spec.freezes[0].from: Invalid value: "integer": must be a time such as`}},
		"a bare duration":                       {"omniclusters", merge, `{"spec":{"syncInterval":300}}`, []string{`spec.syncInterval: Invalid value: "integer": must be a duration such as 10m`}},
		"an inline text":                        {"omniworkers", apply, "spec:\n  patches:\n  - name: a\n    inline: |\n      machine: {}\n", []string{`spec.patches[0].inline: Invalid value: "string": must be an object: write inline blocks`}},
		"an operation":                          {"omniworkers", operations, `[{"op":"replace","path":"/spec/patches/0/labels/a~1b","value":5}]`, []string{`spec.patches[0].labels[a/b]: Invalid value: "integer": must be a string: put it in quotes`}},
		"a size of a class":                     {"omniworkers", merge, `{"spec":{"machineClass":{"name":"a","size":true}}}`, []string{`spec.machineClass.size: Invalid value: "boolean": must be an integer or a string`}},
		"a template's metadata":                 {"omnikubeconfigexports", merge, `{"spec":{"secretTemplate":{"labels":{"a":1}}}}`, []string{`spec.secretTemplate.labels[a]: Invalid value: "integer"`}},
		"all right":                             {"omniworkers", merge, `{"spec":{"machines":null,"nonsense":5,"patches":[{"inline":{"a":[1,"b"]}}],"machineClass":{"name":"a","size":"unlimited"}}}`, nil},
		"another kind":                          {"secrets", merge, `{"spec":{"machines":"one"}}`, nil},
		"operations inside of free-form blocks": {"omniworkers", operations, `[{"op":"add","path":"/spec/patches/0/inline/machine/a","value":5},{"op":"remove","path":"/spec/machines"}]`, nil},
	} {
		r := httptest.NewRequest(http.MethodPatch, "/", strings.NewReader(test.body))
		r.Header.Set("Content-Type", test.content)

		info := &genericapirequest.RequestInfo{APIGroup: "omni.texashpc.com", Resource: test.resource, Name: "w"}
		r = r.WithContext(genericapirequest.WithRequestInfo(r.Context(), info))
		err := b.explain(r.Context(), r, []byte(test.body))

		if (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", name, err)

			continue
		}

		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}

		// Flux answers 422 to an apply with a deletion.
		if err != nil && apierrors.IsInvalid(err) == (test.content == apply) {
			t.Errorf("%s: %#v", name, err)
		}
	}
}
