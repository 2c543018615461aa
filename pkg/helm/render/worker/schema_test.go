package worker

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

func TestLeadsOutside(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object"}`: false,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`: false,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`:      false,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`:                       false,
		`{"$ref":"urn:example:a"}`:        false,
		`not JSON`:                        false,
		`{"type":7}`:                      true, // broken
		`{"$ref":"file:///etc/hostname"}`: true,
		`{"properties":{"a":{"$ref":"http://169.254.169.254/a"}}}`:  true,
		`{"$id":"https://example.com/a/","items":{"$ref":"b"}}`:     true,
		`{"$ref":"other.json"}`:                                     true,
		`{"$schema":"https://example.com/meta"}`:                    true,
		`{"$ref":"urn:example:a","not":{"$ref":"https://a.test/"}}`: true,
	} {
		if got := leadsOutside([]byte(schema)); got != want {
			t.Errorf("%s: %v, want %v", schema, got, want)
		}
	}
}

// With what is left of a chart, Helm asks nobody.
func TestOutsideSchemasAreDropped(t *testing.T) {
	asked := 0

	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(server.Close)

	outside := []byte(`{"properties":{"a":{"$ref":"` + server.URL + `/a"}}}`)
	ch := &chart.Chart{Metadata: &chart.Metadata{Name: "parent"}, Schema: []byte(`{"type":"object","required":["b"]}`)}
	ch.AddDependency(&chart.Chart{Metadata: &chart.Metadata{Name: "child"}, Schema: outside})

	if got := dropOutsideSchemas(ch); !slices.Equal(got, []string{"child"}) {
		t.Errorf("dropped %v", got)
	}

	// The one that stays still counts.
	if err := util.ValidateAgainstSchema(ch, map[string]any{"child": map[string]any{"a": 1}}); err == nil {
		t.Error("the schema of the chart itself is gone")
	}

	if asked > 0 {
		t.Errorf("%d requests", asked)
	}
}

// What several values do against a schema is said in the same words each time.
func TestViolationsAreSorted(t *testing.T) {
	schema := []byte(`{"properties":{"a":{"type":"string"},"b":{"anyOf":[{"type":"string"},{"type":"boolean"}]},"c":{"type":"string"},"d":{"type":"string"}}}`)
	ch := &chart.Chart{Metadata: &chart.Metadata{Name: "demo", Version: "1.0.0", APIVersion: "v2"}, Schema: schema}

	var first string

	for range 20 {
		_, err := execute(&render.Job{}, ch, map[string]any{"a": 1, "b": 2, "c": 3, "d": 4}, nil)
		if err == nil {
			t.Fatal("the values were taken")
		}

		first = cmp.Or(first, err.Error())
		if err.Error() != first {
			t.Fatalf("%v\n\nand before\n\n%s", err, first)
		}
	}

	if !strings.Contains(first, "- at '/b'") || strings.Index(first, "- at '/a'") > strings.Index(first, "- at '/b'") {
		t.Error(first)
	}
}
