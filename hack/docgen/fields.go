package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const modelPrefix = "com.texashpc.omni.v1alpha1."

// writeFields writes a row for each field, with the text that `kubectl explain` shows.
func writeFields(page *strings.Builder, all map[string]common.OpenAPIDefinition, path string, schema spec.Schema) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		target, kind := resolve(property)
		required := ""

		if slices.Contains(schema.Required, name) {
			required = "*"
		}

		fmt.Fprintf(page, "| `%s.%s`%s | %s | %s |\n", path, name, required, kind, oneLine(property.Description))

		if strings.HasPrefix(target, modelPrefix) {
			writeFields(page, all, path+"."+name+strings.TrimPrefix(kind, "object"), all[target].Schema)
		}
	}
}

// oneLine fits a description into a cell of a table: the list of possible values becomes a sentence.
func oneLine(text string) string {
	text = strings.ReplaceAll(text, "\n\nPossible enum values:\n - ", " ")
	text = strings.ReplaceAll(text, "\n - ", " ")

	return strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", "\\|")
}

// resolve returns the model that a property leads to, if any, and a short name of its type.
func resolve(property spec.Schema) (model, kind string) {
	if property.Items != nil && property.Items.Schema != nil {
		model, kind = resolve(*property.Items.Schema)

		return model, kind + "[]"
	}

	if ref := reference(property); ref != "" {
		return ref, "object"
	}

	if len(property.Type) == 0 {
		return "", "any"
	}

	if property.AdditionalProperties != nil {
		return "", "map"
	}

	return "", property.Type[0]
}

func reference(property spec.Schema) string {
	if ref := property.Ref.String(); ref != "" {
		return ref
	}

	for _, part := range property.AllOf {
		if ref := part.Ref.String(); ref != "" {
			return ref
		}
	}

	return ""
}
