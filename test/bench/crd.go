package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The group of the CRD that our API is measured against.
const (
	crdGroup = "bench.example.com"
	preserve = "x-kubernetes-preserve-unknown-fields"
	intOrStr = "x-kubernetes-int-or-string"
	refStart = "#/components/schemas/"
	metaName = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// kept are the keywords of an OpenAPI v3 schema that a structural schema has too and that mean
// the same there. Defaults are not among them: our API server fills in none in the spec.
func kept() []string {
	return []string{
		"type", "format", "description", "enum", "required", "nullable", "pattern", "minimum", "maximum", "minLength", "maxLength",
		"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
	}
}

// customResourceDefinition makes a CRD out of an OpenAPI v3 document (as kube-apiserver serves it
// for a group and version): the kind with the same schema, in the group bench.example.com, with a
// status subresource.
func customResourceDefinition(document []byte, version, kind, plural string) (map[string]any, error) {
	var parsed struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}

	name, err := schemaOfKind(parsed.Components.Schemas, version, kind)
	if err != nil {
		return nil, err
	}

	converter := structural{schemas: parsed.Components.Schemas}

	schema, err := converter.convert(map[string]any{"$ref": refStart + name})
	if err != nil {
		return nil, fmt.Errorf("convert the schema of %s: %w", kind, err)
	}

	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + crdGroup},
		"spec": map[string]any{
			"group": crdGroup,
			"scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": schema},
			}},
		},
	}, nil
}

// schemaOfKind finds the schema whose group, version and kind says that it is the one.
func schemaOfKind(schemas map[string]map[string]any, version, kind string) (string, error) {
	for name, schema := range schemas {
		identities, _ := schema["x-kubernetes-group-version-kind"].([]any)
		for _, identity := range identities {
			if id, ok := identity.(map[string]any); ok && id["kind"] == kind && id["version"] == version {
				return name, nil
			}
		}
	}

	return "", fmt.Errorf("the OpenAPI document has no schema of %s %s", version, kind)
}

// structural turns schemas with references into schemas without.
type structural struct {
	schemas map[string]map[string]any
	within  []string // the references that lead here
}

// convert returns the structural schema of a node.
func (s structural) convert(node map[string]any) (map[string]any, error) {
	if reference, ok := node["$ref"].(string); ok {
		return s.follow(strings.TrimPrefix(reference, refStart))
	}

	if all, ok := node["allOf"].([]any); ok {
		return s.single(node, all)
	}

	// quantities and ports: a number or a text
	if node["oneOf"] != nil || node["format"] == "int-or-string" {
		return map[string]any{intOrStr: true}, nil
	}

	out := map[string]any{}

	for _, key := range kept() {
		if value, ok := node[key]; ok {
			out[key] = value
		}
	}

	if err := s.convertParts(node, out); err != nil {
		return nil, err
	}

	if isFreeForm(out) {
		out[preserve] = true
	}

	return out, nil
}

// follow converts what a reference names.
func (s structural) follow(name string) (map[string]any, error) {
	if name == metaName {
		// kube-apiserver knows the metadata of every object itself, and insists on this.
		return map[string]any{"type": "object"}, nil
	}

	target, ok := s.schemas[name]
	if !ok {
		return nil, fmt.Errorf("reference to %s, which the document does not have", name)
	}

	if slices.Contains(s.within, name) {
		return nil, fmt.Errorf("%s refers to itself, which no structural schema can", name)
	}

	return structural{schemas: s.schemas, within: append(slices.Clone(s.within), name)}.convert(target)
}

// single converts a reference with a description of its own, which OpenAPI v3 writes as allOf.
func (s structural) single(node map[string]any, all []any) (map[string]any, error) {
	reference, ok := all[0].(map[string]any)
	if !ok || len(all) != 1 {
		return nil, errors.New("allOf with other than one schema")
	}

	out, err := s.convert(reference)
	if description, ok := node["description"]; ok && err == nil && reference["$ref"] != refStart+metaName {
		out["description"] = description
	}

	return out, err
}

func (s structural) convertParts(node, out map[string]any) error {
	if properties, ok := node["properties"].(map[string]any); ok {
		converted := map[string]any{}

		for name, property := range properties {
			schema, err := s.convertAny(property)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}

			converted[name] = schema
		}

		out["properties"] = converted
	}

	for _, key := range []string{"items", "additionalProperties"} {
		value, ok := node[key]
		if !ok {
			continue
		}

		schema, err := s.convertAny(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}

		out[key] = schema
	}

	return nil
}

func (s structural) convertAny(value any) (any, error) {
	node, ok := value.(map[string]any)
	if !ok {
		return value, nil // additionalProperties: true
	}

	return s.convert(node)
}

// isFreeForm reports whether a schema allows anything: it has no type, or is an object of which
// nothing is known.
func isFreeForm(schema map[string]any) bool {
	if schema["properties"] != nil || schema["additionalProperties"] != nil {
		return false
	}

	return schema["type"] == nil || schema["type"] == "object"
}
