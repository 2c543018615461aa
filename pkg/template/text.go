package template

import (
	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// InlineText is the text as which Render places inline blocks: YAML with sorted keys, the blocks as documents
// of one stream. A text that is its own InlineText can be kept as an inline block and comes back byte for byte;
// every other text needs a valueFrom for that. The error is about a block that is not a JSON object.
func InlineText(blocks ...v1alpha1.FreeForm) (string, error) {
	return canonicalText(newBudget(), blocks...)
}

// TextNode is a YAML string that every reader takes for that string: quoted wherever some reader could see a
// number, a boolean or a line break of another kind in it. The text must be valid UTF-8.
func TextNode(text string) *yaml.Node { return stringNode(text) }
