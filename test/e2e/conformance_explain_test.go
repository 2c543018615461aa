package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every field that a user can write or read says what it is, down to the last one; kubectl shows them all.
func TestExplainOfEveryField(t *testing.T) {
	t.Parallel()

	schemas := document(t, raw(t, stack.Hub.URL(), openAPIV3Path, "application/json"))["components"].(map[string]any)["schemas"].(map[string]any)
	s := &space{t: t, name: "default"}
	total := 0

	for _, k := range subjects {
		fields := map[string]string{}
		collectFields(schemas, "com.texashpc.omni.v1alpha1."+k.kind, "", fields)
		total += len(fields)

		for path, description := range fields {
			if strings.TrimSpace(description) == "" {
				t.Errorf("%s%s has no description", k.kind, path)
			}
		}

		checkExplained(t, k, fields, s.run("explain", strings.ToLower(k.kind), "--recursive"))
	}

	t.Logf("%d fields of %d kinds", total, len(subjects))

	if total < 400 {
		t.Errorf("%d fields only", total)
	}
}

// checkExplained compares the fields with those in the tree that kubectl prints, by their whole paths.
func checkExplained(t *testing.T, k subject, fields map[string]string, tree string) {
	t.Helper()

	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)), explained(tree)); diff != "" {
		t.Errorf("kubectl explain of %s (-fields +shown):\n%s", k.kind, diff)
	}
}

// explained are the paths of the fields in what kubectl explain --recursive prints, sorted: a line each with name, tab and
// type, two spaces deeper than the field it is in.
func explained(tree string) []string {
	_, lines, _ := strings.Cut(tree, "\nFIELDS:\n")

	var paths, within []string

	for line := range strings.Lines(lines) {
		field, _, found := strings.Cut(line, "\t")
		name := strings.TrimLeft(field, " ")
		depth := (len(field) - len(name)) / 2

		if !found || depth < 1 || depth > len(within)+1 {
			continue // the values of an enumeration
		}

		within = append(within[:depth-1], name)
		paths = append(paths, "."+strings.Join(within, "."))
	}

	slices.Sort(paths)

	return paths
}

// The helper decides what the test sees: a field that is at another place is another field.
func TestExplainedTree(t *testing.T) {
	tree := "KIND:       K\n\nDESCRIPTION:\n    text\ttext\n\nFIELDS:\n  a\t<Object>\n    b\t<Object> -required-\n      c\t<string>\n      enum: x, y\n  b\t<[]Object>\n    c\t<string>\n\n"
	if diff := cmp.Diff([]string{".a", ".a.b", ".a.b.c", ".b", ".b.c"}, explained(tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// collectFields walks a schema into its fields, with a dot before every name.
func collectFields(schemas map[string]any, name, path string, fields map[string]string) {
	schema, _ := schemas[name].(map[string]any)
	properties, _ := schema["properties"].(map[string]any)

	for field, value := range properties {
		property := value.(map[string]any)
		at := path + "." + field
		fields[at], _ = property["description"].(string)

		if reference := referenced(property); reference != "" {
			collectFields(schemas, reference, at, fields)
		}
	}
}

// referenced is the schema behind a property, an element of a list or a value of a map.
func referenced(property map[string]any) string {
	if reference, ok := property["$ref"].(string); ok {
		return reference[strings.LastIndex(reference, "/")+1:]
	}

	if parts, ok := property["allOf"].([]any); ok && len(parts) == 1 {
		return referenced(parts[0].(map[string]any))
	}

	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := property[key].(map[string]any); ok {
			return referenced(inner)
		}
	}

	return ""
}
