package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/openapi"
)

const modelPrefix = "com.texashpc.omni.v1alpha1."

// kinds in the order of the README.
var kinds = [...]string{
	"OmniConnection", "OmniCluster", "OmniControlPlane", "OmniWorkers", "OmniMachine",
	"OmniKubeconfigExport", "OmniSecretSync", "OmniHelmRelease",
}

// fieldsPage lists every field of spec and status of every kind, with the text that
// `kubectl explain` shows.
func fieldsPage() string {
	definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef(name)
	})

	var page strings.Builder

	page.WriteString("# Fields\n\nThe same text as `kubectl explain`. Required fields are marked with `*`.\n")

	for _, kind := range kinds {
		definition := definitions[modelPrefix+kind]
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| Field | Type | Meaning |\n|---|---|---|\n", kind, definition.Schema.Description)

		for _, part := range []string{"spec", "status"} {
			writeFields(&page, definitions, part, definitions[modelPrefix+kind+strings.ToUpper(part[:1])+part[1:]].Schema)
		}
	}

	return page.String()
}

func writeFields(page *strings.Builder, all map[string]common.OpenAPIDefinition, path string, schema spec.Schema) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		target, kind := resolve(property)
		required := ""

		if slices.Contains(schema.Required, name) {
			required = "*"
		}

		fmt.Fprintf(page, "| `%s.%s`%s | %s | %s |\n", path, name, required, kind, strings.ReplaceAll(property.Description, "|", "\\|"))

		if strings.HasPrefix(target, modelPrefix) {
			writeFields(page, all, path+"."+name+strings.TrimPrefix(kind, "object"), all[target].Schema)
		}
	}
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
