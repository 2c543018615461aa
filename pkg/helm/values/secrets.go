package values

import (
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// WithOlder returns values that also keep older ones out of texts, as far as they are not among
// the current ones that came from no Secret, and the size of what they keep beside what v keeps. Config is what Helm's record
// of an older revision has.
func (v Values) WithOlder(config map[string]any) (Values, foreign.Size) {
	var added foreign.Size

	known := map[string]bool{} // which of them came from a Secret

	for _, text := range redact.Leaves(v.tree) {
		known[text] = false
	}

	for _, text := range v.secrets {
		known[text] = true
	}

	var older []string

	for _, text := range redact.Leaves(config) {
		if _, found := known[text]; !found {
			older, known[text] = append(older, text), true
			added = added.And(sizeOf(text))
		}
	}

	v.secrets, v.hidden = slices.Concat(v.secrets, older), v.hidden.With(redact.Of(older...))

	return v, added
}

// sizeOf is what keeping a text out of others takes. One with escapes is kept as it is, and without them.
func sizeOf(text string) foreign.Size {
	size := foreign.Size{Nodes: 1, Bytes: len(text)}
	if strings.Contains(text, `\`) {
		size = size.And(size)
	}

	return size
}

// Remove takes what came from a Secret out of a text, and changes nothing else.
func (v Values) Remove(text string) string { return v.hidden.Remove(text) }

// Redact makes a text of Helm or of a cluster fit for conditions and logs: one
// line, and nothing in it that came from a Secret.
func (v Values) Redact(text string) string {
	return v.hidden.Line(text)
}
