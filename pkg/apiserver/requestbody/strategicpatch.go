package requestbody

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

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
