package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = `{"components":{"schemas":{
  "x.Thing":{"type":"object","description":"A thing.","required":["spec"],
    "x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Thing"}],
    "properties":{
      "apiVersion":{"type":"string"},
      "metadata":{"default":{},"description":"No CRD may describe it.","allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
      "spec":{"default":{},"description":"What is wanted.","allOf":[{"$ref":"#/components/schemas/x.Spec"}]}}},
  "x.Spec":{"type":"object","description":"Never shown.","properties":{
      "mode":{"type":"string","default":"a","enum":["a","b"]},
      "labels":{"type":"object","additionalProperties":{"type":"string","default":""}},
      "list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"x-kubernetes-patch-strategy":"merge",
        "items":{"allOf":[{"$ref":"#/components/schemas/x.Item"}]}},
      "any":{"$ref":"#/components/schemas/x.Free"},
      "size":{"oneOf":[{"type":"integer"},{"type":"string"}]},
      "when":{"$ref":"#/components/schemas/x.Time"}}},
  "x.Item":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"inline":{"type":"object"}}},
  "x.Free":{"description":"Anything."},
  "x.Time":{"type":"string","format":"date-time"},
  "x.Loop":{"type":"object","x-kubernetes-group-version-kind":[{"version":"v1","kind":"Loop"}],
    "properties":{"again":{"$ref":"#/components/schemas/x.Loop"}}},
  "x.Lost":{"type":"object","x-kubernetes-group-version-kind":[{"version":"v1","kind":"Lost"}],
    "properties":{"where":{"$ref":"#/components/schemas/x.None"}}},
  "x.Both":{"x-kubernetes-group-version-kind":[{"version":"v1","kind":"Both"}],"allOf":[{"type":"string"},{"type":"string"}]}
}}}`

const wantSchema = `{
  "type":"object","description":"A thing.","required":["spec"],
  "properties":{
    "apiVersion":{"type":"string"},
    "metadata":{"type":"object"},
    "spec":{"type":"object","description":"What is wanted.","properties":{
      "mode":{"type":"string","enum":["a","b"]},
      "labels":{"type":"object","additionalProperties":{"type":"string"}},
      "list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
        "items":{"type":"object","required":["name"],"properties":{
          "name":{"type":"string"},
          "inline":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},
      "any":{"description":"Anything.","x-kubernetes-preserve-unknown-fields":true},
      "size":{"x-kubernetes-int-or-string":true},
      "when":{"type":"string","format":"date-time"}}}}}`

func TestCustomResourceDefinition(t *testing.T) {
	got, err := customResourceDefinition([]byte(document), "v1", "Thing", "things")
	if err != nil {
		t.Fatal(err)
	}

	var want map[string]any
	if err := json.Unmarshal([]byte(wantSchema), &want); err != nil {
		t.Fatal(err)
	}

	spec := got["spec"].(map[string]any)
	version := spec["versions"].([]any)[0].(map[string]any)

	if diff := cmp.Diff(want, version["schema"].(map[string]any)["openAPIV3Schema"]); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}

	if got["metadata"].(map[string]any)["name"] != "things.bench.example.com" || spec["group"] != "bench.example.com" ||
		version["name"] != "v1" || version["subresources"] == nil {
		t.Errorf("%v", got)
	}
}

func TestSchemasThatCannotBeConverted(t *testing.T) {
	for kind, want := range map[string]string{
		"Loop": "refers to itself", "Lost": "x.None", "Both": "allOf", "Absent": "no schema of v1 Absent",
	} {
		if _, err := customResourceDefinition([]byte(document), "v1", kind, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}

	if _, err := customResourceDefinition([]byte("{"), "v1", "Thing", "things"); err == nil {
		t.Error("no error for what is not JSON")
	}
}
