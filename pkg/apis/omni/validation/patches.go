package validation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
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

	if _, unknown := unknownKind(inline); unknown {
		return nil // with a warning: see warningsForKind
	}

	if err := omnires.ValidateConfigPatch(text); err != nil {
		return field.ErrorList{invalidValue(wrongTypeIn(text, path), explainPatchError(err))}
	}

	return nil
}

// warningsForKind warns of a patch whose kind the Talos library of this build does not know, and which nothing here checks.
func warningsForKind(inline *v1alpha1.FreeForm, path *field.Path) []string {
	kind, unknown := unknownKind(inline)
	if !unknown {
		return nil
	}

	return []string{warning(path, fmt.Sprintf("Omni decides about %.40s: this build does not know it", kind))}
}

// warningsForInstallDisk warns of a patch that Omni refuses since 1.11.
func warningsForInstallDisk(inline *v1alpha1.FreeForm, path *field.Path) []string {
	if inline == nil {
		return nil
	}

	var document map[string]json.RawMessage

	raw := inline.Raw
	for _, key := range []string{"machine", "install", "disk"} {
		document = nil
		if json.Unmarshal(raw, &document) != nil || document[key] == nil {
			return nil
		}

		raw = document[key]
	}

	return []string{warning(path, "Omni 1.11 refuses machine.install.disk: set install.disk or diskSelector of the OmniMachine")}
}

// unknownKind returns apiVersion and kind of a patch, and whether they are those of a document that the Talos library of this
// build does not know. An inline patch is one document.
func unknownKind(inline *v1alpha1.FreeForm) (string, bool) {
	if inline == nil {
		return "", false
	}

	// Not a struct: encoding/json would take Kind for kind.
	var document map[string]json.RawMessage
	if err := json.Unmarshal(inline.Raw, &document); err != nil {
		return "", false
	}

	var apiVersion, kind string
	if json.Unmarshal(document["apiVersion"], &apiVersion) != nil || json.Unmarshal(document["kind"], &kind) != nil {
		return "", false
	}

	return apiVersion + " " + kind, template.IsUnknownKind(apiVersion, kind)
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
		is, belongs := wrongType[1], wrongType[2]
		said := fmt.Sprintf("is not a Talos configuration patch: a value is of type %s where %s belongs", is, belongs)

		if is == "str" && regexp.MustCompile(`^\*?(bool|u?int\d*|float\d*)$`).MatchString(belongs) {
			said += ": write it without quotes"
		}

		return said
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

const (
	// maxFreeForm is the largest size of one free-form block, in bytes of compact JSON.
	maxFreeForm = 256 << 10
	// maxDepth is how deep objects and lists of one block may be nested. No real document comes near it, and
	// indenting a block of thousands of levels would take gigabytes.
	maxDepth = 128
	// maxNumberWarnings bounds the warnings on one block.
	maxNumberWarnings = 3
)

// validateFreeForm checks the size and the depth of a block, which may consist of several objects. remedy says how to
// make the block smaller.
func validateFreeForm(path *field.Path, remedy string, blocks ...v1alpha1.FreeForm) field.ErrorList {
	size := 0

	for i := range blocks {
		if size += len(blocks[i].Raw); foreign.DepthOfJSON(blocks[i].Raw) > maxDepth {
			return field.ErrorList{invalidValue(path, fmt.Sprintf("is nested deeper than %d levels: make it flatter", maxDepth))}
		}
	}

	if size <= maxFreeForm {
		return nil
	}

	return field.ErrorList{invalidValue(path, fmt.Sprintf("has %d KiB, at most %d KiB fit: %s", (size+1023)>>10, maxFreeForm>>10, remedy))}
}

// warningsForNumbers advises quoting integers that server-side apply would change: it decodes integers of more than
// 64 bits as floats.
func warningsForNumbers(block *v1alpha1.FreeForm, path *field.Path) []string {
	if block == nil {
		return nil
	}

	found := findBigIntegers(block.Raw, path)

	var warnings []string

	for i, at := range found {
		if i == maxNumberWarnings {
			warnings = append(warnings, warning(path, fmt.Sprintf("%d more integers of 2^63 or more: quote them", len(found)-i)))

			break
		}

		warnings = append(warnings, warning(at, "quote an integer of 2^63 or more: server-side apply rounds it"))
	}

	return warnings
}

// findBigIntegers returns the path of every unquoted integer of 2^63 or more, in the order of the text.
func findBigIntegers(raw []byte, path *field.Path) []*field.Path {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()

	var found []*field.Path

	var walk func(at *field.Path) error

	walk = func(at *field.Path) error {
		token, err := decoder.Token()
		if err != nil {
			return err
		}

		switch token := token.(type) {
		case json.Number:
			if isBigInteger(token) {
				found = append(found, at)
			}
		case json.Delim:
			return walkMembers(decoder, token, at, walk)
		}

		return nil
	}

	// The text was valid when the object was decoded; an invalid one ends the walk.
	_ = walk(path)

	return found
}

// walkMembers walks the members of the object or array whose opening delimiter was just read.
func walkMembers(decoder *json.Decoder, open json.Delim, at *field.Path, walk func(*field.Path) error) error {
	for index := 0; decoder.More(); index++ {
		member := at.Index(index)

		if open == '{' {
			key, err := decoder.Token()
			if err != nil {
				return err
			}

			name, ok := key.(string)
			if !ok {
				return io.ErrUnexpectedEOF
			}

			member = childOrKey(at, name)
		}

		if err := walk(member); err != nil {
			return err
		}
	}

	_, err := decoder.Token()

	return err
}

// childOrKey writes simple member names as ".name" and others, such as "a.b/c", as "[a.b/c]".
func childOrKey(at *field.Path, name string) *field.Path {
	if name == "" || strings.ContainsAny(name, ".[]/ ") {
		return at.Key(name)
	}

	return at.Child(name)
}

func isBigInteger(number json.Number) bool {
	integer, ok := new(big.Int).SetString(string(number), 10)

	return ok && !integer.IsInt64()
}

// canonicalJSON encodes a block again: numbers as they are written, and texts as plain UTF-8, which YAML parsers read
// even if they do not know JSON's surrogate escapes.
func canonicalJSON(raw []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()

	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}

	return json.Marshal(value)
}
