package requestbody

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// jsonPatch is what a JSON patch costs besides its text. The zero value stands for all other bodies.
type jsonPatch struct {
	// copies says whether there are copy operations, which can make an object larger and deeper than the patch is.
	copies bool
	// levels is how many levels its longest pointer names. The library reads an object as deep as pointers go.
	levels int
}

// readJSONPatch reads a body as the library does: the last of equal keys counts, and only if it is spelled exactly.
func readJSONPatch(r *http.Request, body []byte) jsonPatch {
	if patchTypeOf(r) != types.JSONPatchType {
		return jsonPatch{}
	}

	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(body, &operations); err != nil {
		return jsonPatch{} // and no patch
	}

	var patch jsonPatch

	for _, operation := range operations {
		patch.copies = patch.copies || textOf(operation["op"]) == "copy"
		patch.levels = max(patch.levels, strings.Count(textOf(operation["path"]), "/"), strings.Count(textOf(operation["from"]), "/"))
	}

	return patch
}

// textOf returns a JSON text's string; empty if it is no string.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}

	return text
}

// patchTypeOf returns the type of a patch as the library reads it, which does not look at what follows the semicolon.
func patchTypeOf(r *http.Request) types.PatchType {
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")

	return types.PatchType(mediaType)
}

// asMergePatch turns a strategic merge patch, which kubectl sends by default, into a merge patch if both have the
// same effect. For a strategic patch the library looks fields up in the Go types; it fails with 500 inside a
// free-form block, where there are none, and it decodes all numbers of the object as floats.
//
// The two patch types differ in directives ($patch and the like) and in lists that are merged. Our kinds have such
// lists in their metadata and status only. A patch with a directive or such a list is passed on unchanged.
func asMergePatch(r *http.Request, body []byte) *http.Request {
	if patchTypeOf(r) != types.StrategicMergePatchType {
		return r
	}

	var patch map[string]any

	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a number beyond all floats is no error here

	if decoder.Decode(&patch) != nil || hasDirective(patch) || hasList(patch["metadata"]) || hasList(patch["status"]) {
		return r
	}

	changed := *r
	changed.Header = r.Header.Clone()
	changed.Header.Set("Content-Type", string(types.MergePatchType))

	return &changed
}

// hasDirective reports whether a map has a key that is a patch directive. It does not search lists that are replaced:
// there such keys are content, for example of a Talos patch.
func hasDirective(patch map[string]any) bool {
	for key, value := range patch {
		if strings.HasPrefix(key, "$") {
			return true
		}

		if member, isMap := value.(map[string]any); isMap && hasDirective(member) {
			return true
		}
	}

	return false
}

// hasList reports whether there is a list in a value.
func hasList(value any) bool {
	switch value := value.(type) {
	case []any:
		return true
	case map[string]any:
		for _, member := range value {
			if hasList(member) {
				return true
			}
		}
	default:
	}

	return false
}
