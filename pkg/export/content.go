package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

const (
	// maxInline is the largest content that is kept inline, in bytes: far below what the API takes for one
	// block, because a manifest is read by people.
	maxInline = 64 << 10
	// maxBlock is the largest content that is parsed, in bytes: what the API takes for one block.
	maxBlock = 256 << 10
	// maxNesting is how deep a content may be nested to be kept inline.
	maxNesting = 64
	// exactInteger is the first integer that a 64-bit float may not keep.
	exactInteger = 1 << 53
)

// errNotPlain is what a content gets that cannot go through JSON, or not through every tool, unchanged.
var errNotPlain = errors.New("it does not keep its meaning as a JSON object")

// inlineBlocks returns the objects of a content, if rendering them gives the same bytes and if nothing between a
// manifest and the API changes them. Everything else must be read from a ConfigMap.
func inlineBlocks(content string) ([]v1alpha1.FreeForm, bool) {
	if len(content) > maxInline {
		return nil, false
	}

	blocks, err := parseObjects(content, strictScalar)
	if err != nil || len(blocks) == 0 {
		return nil, false
	}

	text, err := template.InlineText(blocks...)

	return blocks, err == nil && text == content
}

// parseObjects reads a stream of YAML objects.
func parseObjects(content string, scalar func(*yaml.Node) (any, error)) ([]v1alpha1.FreeForm, error) {
	// Nodes take a hundred times the length of a text that consists of short values.
	if len(content) > maxBlock {
		return nil, fmt.Errorf("it has more than %d KiB, which no inline object takes: %w", maxBlock>>10, errNotPlain)
	}

	var blocks []v1alpha1.FreeForm

	decoder := yaml.NewDecoder(strings.NewReader(content))

	for {
		var document yaml.Node

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return blocks, nil
		}

		if err != nil {
			return nil, fmt.Errorf("it is not YAML: %w", errNotPlain)
		}

		value, err := plainValue(&document, scalar, 0)
		if err != nil {
			return nil, err
		}

		if _, object := value.(map[string]any); !object {
			return nil, errNotPlain
		}

		raw, err := json.Marshal(value)
		if err != nil {
			return nil, errNotPlain
		}

		var block v1alpha1.FreeForm
		if err := block.UnmarshalJSON(bytes.TrimSpace(raw)); err != nil {
			return nil, errNotPlain
		}

		blocks = append(blocks, block)
	}
}

func plainValue(node *yaml.Node, scalar func(*yaml.Node) (any, error), level int) (any, error) {
	if level > maxNesting || node.Anchor != "" {
		return nil, errNotPlain
	}

	switch node.Kind { // an alias is not plain
	case yaml.DocumentNode:
		return plainValue(node.Content[0], scalar, level)
	case yaml.MappingNode:
		return plainMapping(node, scalar, level)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))

		for _, child := range node.Content {
			value, err := plainValue(child, scalar, level+1)
			if err != nil {
				return nil, err
			}

			list = append(list, value)
		}

		return list, nil
	case yaml.ScalarNode:
		return scalar(node)
	default:
		return nil, errNotPlain
	}
}

// plainMapping refuses keys that kubectl could take for an instruction ($patch) and merge keys.
func plainMapping(node *yaml.Node, scalar func(*yaml.Node) (any, error), level int) (any, error) {
	members := make(map[string]any, len(node.Content)/2)

	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || strings.HasPrefix(key.Value, "$") {
			return nil, errNotPlain
		}

		value, err := plainValue(node.Content[i+1], scalar, level+1)
		if err != nil {
			return nil, err
		}

		members[key.Value] = value
	}

	return members, nil
}

// strictScalar takes what every tool keeps: texts, booleans and integers that a 64-bit float holds exactly. Null
// is left out, because a merge patch takes it for a removal.
func strictScalar(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!str":
		return node.Value, nil
	case "!!bool":
		return node.Value == "true", nil
	case "!!int":
		value, err := strconv.ParseInt(node.Value, 10, 64)
		if err != nil || value >= exactInteger || value <= -exactInteger || strconv.FormatInt(value, 10) != node.Value {
			return nil, errNotPlain
		}

		return json.Number(node.Value), nil
	default:
		return nil, errNotPlain
	}
}

// jsonNumber is a number as JSON writes it.
const jsonNumber = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`

// maxJobNodes bounds the values in the job of a health check.
const maxJobNodes = 20_000

// jobOf returns the job of a health check, which can only be an inline block. Omni reads it as Kubernetes does, by YAML 1.1:
// yes is true there, and 0755 is 493.
func jobOf(ctx context.Context, content string) (*v1alpha1.FreeForm, error) {
	// What the API takes for one block.
	limits := foreign.Limits{Bytes: maxBlock, Depth: maxNesting, Nodes: maxJobNodes, Expanded: maxBlock}

	documents, err := foreign.Documents(ctx, []byte(content), limits)
	if err != nil {
		return nil, err
	}

	var blocks []v1alpha1.FreeForm

	for _, document := range documents {
		if string(bytes.TrimSpace(document)) == "null" {
			continue
		}

		objects, err := parseObjects(string(document), scalarOfJSON)
		if err != nil {
			return nil, err
		}

		blocks = append(blocks, objects...)
	}

	if len(blocks) != 1 {
		return nil, fmt.Errorf("it holds %d objects", len(blocks))
	}

	return &blocks[0], nil
}

// scalarOfJSON takes all that JSON can say.
func scalarOfJSON(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null":
		return nil, nil //nolint:nilnil // null is a value
	case "!!bool":
		return node.Value == "true", nil
	case "!!int", "!!float":
		if !regexp.MustCompile(jsonNumber).MatchString(node.Value) {
			return nil, errNotPlain
		}

		return json.Number(node.Value), nil
	case "!!str":
		return node.Value, nil
	default:
		return nil, errNotPlain
	}
}
