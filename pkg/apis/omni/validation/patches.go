package validation

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// maxUnknownKeys bounds how many unknown keys of a patch an error names.
const maxUnknownKeys = 5

// validatePatches checks a list of Talos configuration patches. stored is the list before the update; content that it
// has already is not checked again: Omni's own check is our most expensive rule, and a later, stricter version of it
// must not refuse changes elsewhere in the spec.
func validatePatches(patches, stored []v1alpha1.Patch, path *field.Path) field.ErrorList {
	var errs field.ErrorList

	overrides := map[string]bool{}

	for i := range patches {
		patch, at := &patches[i], path.Index(i)

		// Two patches may have the same name: Omni's ID contains the position in the list.
		errs = append(errs, validateIdentity(patch.Name, patch.IDOverride, at)...)
		errs = append(errs, validateUniqueOverride(patch.IDOverride, overrides, at)...)
		errs = append(errs, validateOmniMetadata(patch.Labels, patch.Annotations, at)...)

		if !isStored(patch, stored) {
			errs = append(errs, validatePatchContent(patch, at)...)
		}
	}

	return errs
}

// isStored reports whether a patch in stored has the same inline content.
func isStored(patch *v1alpha1.Patch, stored []v1alpha1.Patch) bool {
	return patch.Inline != nil && patch.ValueFrom == nil && slices.ContainsFunc(stored, func(old v1alpha1.Patch) bool {
		return old.Inline != nil && bytes.Equal(old.Inline.Raw, patch.Inline.Raw)
	})
}

// validateIdentity checks that Omni can derive an ID: it needs a name, or the ID itself.
func validateIdentity(name, idOverride string, path *field.Path) field.ErrorList {
	if name == "" && idOverride == "" {
		return field.ErrorList{field.Required(path.Child("name"), "set name or idOverride: Omni derives the ID from it")}
	}

	return nil
}

func validateUniqueOverride(idOverride string, seen map[string]bool, path *field.Path) field.ErrorList {
	if idOverride == "" {
		return nil
	}

	if seen[idOverride] {
		return field.ErrorList{field.Duplicate(path.Child("idOverride"), idOverride)}
	}

	seen[idOverride] = true

	return nil
}

func validatePatchContent(patch *v1alpha1.Patch, path *field.Path) field.ErrorList {
	switch {
	case patch.Inline != nil && patch.ValueFrom != nil:
		return field.ErrorList{field.Forbidden(path.Child("valueFrom"), "cannot be combined with inline: keep one of them")}
	case patch.Inline != nil:
		return validateInlinePatch(patch.Inline, path.Child("inline"))
	case patch.ValueFrom != nil:
		return validateValueSource(patch.ValueFrom, path.Child("valueFrom"))
	default:
		return field.ErrorList{field.Required(path, "set inline or valueFrom")}
	}
}

func validateInlinePatch(inline *v1alpha1.FreeForm, path *field.Path) field.ErrorList {
	if errs := validateFreeForm(path, "split it, or read it with valueFrom", *inline); len(errs) > 0 {
		return errs
	}

	text, err := canonicalJSON(inline.Raw)
	if err != nil {
		return field.ErrorList{invalidValue(path, "must be an object")}
	}

	if err := omnires.ValidateConfigPatch(text); err != nil {
		return field.ErrorList{invalidValue(path, explainPatchError(err))}
	}

	return nil
}

// explainPatchError says in our own words why a patch was refused. The library's error text must not be passed on: it
// quotes values of the patch, which may be secrets.
func explainPatchError(err error) string {
	var several interface{ WrappedErrors() []error }
	if errors.As(err, &several) {
		return "sets what Omni sets itself, remove: " + strings.Join(forbiddenParts(several.WrappedErrors()), ", ")
	}

	text := err.Error()

	if _, unknown, ok := strings.Cut(text, "unknown keys found during decoding:"); ok {
		return "has keys that Talos does not know, correct or remove: " + unknownKeys(unknown)
	}

	if wrongType := regexp.MustCompile(`cannot (?:unmarshal|construct) !!(\w+) .*into ([\w.\[\]*]+)`).FindStringSubmatch(text); wrongType != nil {
		return fmt.Sprintf("is not a Talos configuration patch: a value is of type %s where %s belongs", wrongType[1], wrongType[2])
	}

	switch {
	case strings.Contains(text, "config not found"):
		return "is empty: write the fragment of the machine configuration to change"
	case strings.Contains(text, "missing kind"), strings.Contains(text, "missing apiVersion"):
		return "is not a Talos configuration patch: begin with machine or cluster, or set apiVersion and kind of a Talos document"
	case strings.Contains(text, "not registered"):
		return "has an apiVersion and kind that Talos does not know: correct them"
	default:
		return "is not a Talos configuration patch: compare it with the Talos reference of machine configurations"
	}
}

// forbiddenParts extracts the names of Talos fields and roles from the library's error: these texts are the
// library's, not the user's.
func forbiddenParts(errs []error) []string {
	quoted := regexp.MustCompile(`"([\w.:-]+)"`)

	var parts []string

	for _, err := range errs {
		names := quoted.FindAllStringSubmatch(err.Error(), -1)

		var part []string
		for i := len(names) - 1; i >= 0; i-- {
			part = append(part, names[i][1])
		}

		parts = append(parts, strings.Join(part, " "))
	}

	// The library iterates over a map, so the order is random.
	slices.Sort(parts)

	return parts
}

// unknownKeys lists the paths of the keys in the YAML that the library prints, without the values.
func unknownKeys(text string) string {
	var tree yaml.Node
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return "see the Talos reference"
	}

	var keys []string

	collectKeys(&tree, "", &keys)

	if len(keys) > maxUnknownKeys {
		keys = append(keys[:maxUnknownKeys], fmt.Sprintf("%d more", len(keys)-maxUnknownKeys))
	}

	return strings.Join(keys, ", ")
}

func collectKeys(node *yaml.Node, path string, keys *[]string) {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			collectKeys(node.Content[i+1], strings.TrimPrefix(path+"."+shortKey(node.Content[i].Value), "."), keys)
		}

		return
	}

	if node.Kind == yaml.DocumentNode || node.Kind == yaml.SequenceNode && path == "" {
		for _, child := range node.Content {
			collectKeys(child, path, keys)
		}

		return
	}

	*keys = append(*keys, path)
}

// shortKey truncates a key: a user may have put a long value in its place by mistake.
func shortKey(key string) string {
	const longest = 40
	if len(key) > longest {
		return key[:longest] + "..."
	}

	return key
}
