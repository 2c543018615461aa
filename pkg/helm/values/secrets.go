package values

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// WithOlder returns values that also keep older ones out of texts, as far as they are not among
// the current ones that came from no Secret. Config is what Helm's record of an older revision has.
func (v Values) WithOlder(config map[string]any) Values {
	known := map[string]bool{} // which of them came from a Secret

	for _, text := range redact.Leaves(v.tree) {
		known[text] = false
	}

	for _, text := range v.secrets {
		known[text] = true
	}

	v.secrets = slices.Clone(v.secrets)

	for _, text := range redact.Leaves(config) {
		if _, found := known[text]; !found {
			v.secrets, known[text] = append(v.secrets, text), true
		}
	}

	v.hidden = redact.Of(v.secrets...)

	return v
}

// Remove takes what came from a Secret out of a text, and changes nothing else.
func (v Values) Remove(text string) string { return v.hidden.Remove(text) }

// Redact makes a text of Helm or of a cluster fit for conditions and logs: one
// line, and nothing in it that came from a Secret.
func (v Values) Redact(text string) string {
	return v.hidden.Line(text)
}
