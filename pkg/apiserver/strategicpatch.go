package apiserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// asMergePatch is the request with a strategic merge patch, which kubectl sends unless told otherwise, as a merge patch, if
// both say the same. The library looks the fields of a strategic patch up in the Go types and fails with 500 inside of
// a free-form block, where there are none; and it reads all numbers of the object as floats.
//
// They differ in directives ($patch and the like) and in lists that are merged. The kinds have such lists in their metadata
// and in their status only. A patch with one of these is left as it is.
func asMergePatch(r *http.Request, body []byte) *http.Request {
	if mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); mediaType != string(types.StrategicMergePatchType) {
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

// hasDirective reports whether a map has a key that tells how to patch. In a list that is replaced, such keys are content: a
// Talos patch may have them.
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
