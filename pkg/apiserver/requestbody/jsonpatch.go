package requestbody

import (
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
