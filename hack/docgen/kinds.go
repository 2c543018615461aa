package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/openapi"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnicluster"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omniconnection"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnicontrolplane"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnihelmrelease"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnikubeconfigexport"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnimachine"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnirolloutpolicy"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omnisecretsync"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/omni/omniworkers"
)

// Where the hand-written part of a kind's page is, from the root of the repository.
const examplesFolder = "hack/docgen/examples"

// kind is what the API server says of a kind.
type kind struct {
	Kind, Plural, ShortName string
	selector                string // the field of the spec that field selectors may name
	scale                   bool
	columns                 []column
}

// column is one that kubectl prints.
type column struct {
	Name, Description string
	Wide              bool
}

// kinds in the order of the README.
func kinds() []kind {
	var all []kind

	for _, descriptor := range []any{
		omniconnection.Descriptor(time.Now, nil), omnicluster.Descriptor(false), omnicontrolplane.Descriptor(), omniworkers.Descriptor(),
		omnimachine.Descriptor(), omnikubeconfigexport.Descriptor(time.Now), omnisecretsync.Descriptor(time.Now), omnihelmrelease.Descriptor(),
		omnirolloutpolicy.Descriptor(time.Now, nil),
	} {
		all = append(all, readDescriptor(descriptor))
	}

	return all
}

// readDescriptor reads a *kit.Descriptor. Its package is internal, and its type another one for each kind.
func readDescriptor(descriptor any) kind {
	value := reflect.ValueOf(descriptor).Elem()
	text := func(of reflect.Value, field string) string { return of.FieldByName(field).String() }

	read := kind{
		Kind: text(value, "Kind"), Plural: text(value, "Plural"), ShortName: text(value, "ShortName"),
		scale: !value.FieldByName("Scale").IsNil(),
	}

	if selectable := value.FieldByName("Selectable"); !selectable.IsNil() {
		read.selector = text(selectable.Elem(), "Label")
	}

	columns := value.Addr().MethodByName("AllColumns").Call(nil)[0]
	for i := range columns.Len() {
		one := columns.Index(i)
		read.columns = append(read.columns, column{text(one, "Name"), text(one, "Description"), one.FieldByName("Wide").Bool()})
	}

	return read
}

// page is the name of the kind's page below docs/reference.
func (k kind) page() string { return strings.ToLower(k.Kind) + ".md" }

// kindPages returns a page for each kind by its name, and the page that lists them all.
func kindPages(root string) (map[string]string, error) {
	definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(name) })
	pages := map[string]string{}

	var list strings.Builder

	list.WriteString("# Kinds and fields\n\nA page for each kind: an example, what kubectl prints, every field, and the condition types. The texts are those of\n" +
		"`kubectl explain`. Reasons of conditions have [a page of their own](conditions.md).\n\n| Kind | Short name | What it is |\n|---|---|---|\n")

	for _, k := range kinds() {
		example, err := os.ReadFile(filepath.Join(root, examplesFolder, k.page()))
		if err != nil {
			return nil, fmt.Errorf("read the hand-written part: %w", err)
		}

		conditions, err := conditionTypes(root, k.Kind)
		if err != nil {
			return nil, err
		}

		description := definitions[modelPrefix+k.Kind].Schema.Description
		first, _, _ := strings.Cut(description, ". ")
		fmt.Fprintf(&list, "| [%s](%s) | `%s` | %s. |\n", k.Kind, k.page(), k.ShortName, strings.TrimSuffix(first, "."))

		pages[k.page()] = "# " + k.Kind + "\n\n" + description + "\n\n" + k.facts() + "\n" +
			strings.TrimSpace(string(example)) + "\n\n" + k.tables(definitions) + conditions
	}

	pages["fields.md"] = list.String()

	return pages, nil
}

// facts are how the kind is called and asked for.
func (k kind) facts() string {
	subresources := []string{"`status`"}
	if k.scale {
		subresources = append(subresources, "`scale` (`kubectl scale`)")
	}

	if k.Plural == "omniclusters" {
		subresources = append(subresources, "`template` ([read only](../concepts/template.md#looking-at-it))")
	}

	facts := fmt.Sprintf("| | |\n|---|---|\n| Short name | `%s` |\n| Resource | `%s.omni.texashpc.com`, in a namespace |\n| Subresources | %s |\n",
		k.ShortName, k.Plural, strings.Join(subresources, ", "))

	if k.selector != "" {
		facts += fmt.Sprintf("| Field selector | `kubectl get %s --field-selector %s=NAME` |\n", k.ShortName, k.selector)
	}

	return facts
}

// tables are the columns and the fields.
func (k kind) tables(definitions map[string]common.OpenAPIDefinition) string {
	var page strings.Builder

	fmt.Fprintf(&page, "## What kubectl prints\n\n| Column | Meaning |\n|---|---|\n")

	for _, c := range k.columns {
		if c.Wide {
			c.Name += " (`-o wide`)"
		}

		fmt.Fprintf(&page, "| %s | %s |\n", c.Name, c.Description)
	}

	for _, part := range []string{"Spec", "Status"} {
		fmt.Fprintf(&page, "\n## %s\n\n", part)

		if part == "Spec" {
			page.WriteString("Fields marked with `*` are required.\n\n")
		}

		page.WriteString("| Field | Type | Meaning |\n|---|---|---|\n")
		writeFields(&page, definitions, strings.ToLower(part), definitions[modelPrefix+k.Kind+part].Schema)
	}

	return page.String()
}

// conditionTypes are the condition types of the kind: those of every kind, of several, and its own.
func conditionTypes(root, kind string) (string, error) {
	groups, err := conditionGroups(filepath.Join(root, conditionsFile))
	if err != nil {
		return "", err
	}

	rows := ""

	for _, group := range groups {
		title := group.title()
		if !strings.HasPrefix(title, "Condition types ") {
			continue
		}

		// Those of several kinds name them in the text of each.
		every, named := strings.HasSuffix(title, " of every kind"), strings.Contains(title, kind)

		for _, c := range group.constants() {
			if every || named || strings.HasSuffix(title, " of several kinds") && strings.Contains(c.meaning, kind) {
				rows += fmt.Sprintf("| `%s` | %s |\n", c.value, c.meaning)
			}
		}
	}

	if rows == "" {
		return "", errors.New(kind + " has no condition types")
	}

	return "\n## Conditions\n\nTheir reasons are on [a page of their own](conditions.md).\n\n| Type | Meaning |\n|---|---|\n" + rows, nil
}
