package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// indent is the number of spaces per level, inside free-form blocks and around them.
const indent = 2

// canonicalText writes the blocks as YAML documents, separated by ---. The text depends on the content only:
// keys are sorted, and the order in which they were written and the white space between them are gone. Numbers
// are kept as they were written, digit for digit.
func canonicalText(within *budget, blocks ...v1alpha1.FreeForm) (string, error) {
	text, err := within.encode(len(blocks), func(i int) (any, error) {
		content, err := decodeBlock(blocks[i])
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i+1, err)
		}

		return canonicalNode(content), nil
	})

	return string(text), err
}

func decodeBlock(block v1alpha1.FreeForm) (any, error) {
	raw, err := block.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}

	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()

	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the object: there is text behind it")
	}

	return content, nil
}

func canonicalNode(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, stringNode(key), canonicalNode(v[key]))
		}

		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, element := range v {
			node.Content = append(node.Content, canonicalNode(element))
		}

		return node
	case string:
		return stringNode(v)
	case json.Number:
		// Without a tag the encoder takes the text as it is. With one it would compare the tag with its own
		// reading of the number and, where they differ, write the tag too.
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
}

// stringNode quotes every string that any YAML reader could take for something else.
func stringNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}

	switch {
	case isPlain(text):
	case strings.Contains(text, "\n") && fitsBlock(text):
		node.Style = yaml.LiteralStyle
	default:
		node.Style = yaml.DoubleQuotedStyle
	}

	return node
}

// isPlain is narrow on purpose: a quote too many is harmless, and the rule must not change with a library.
func isPlain(text string) bool {
	if text == "" || !isLetter(text[0]) && text[0] != '/' {
		return false
	}

	for i := range len(text) {
		if !isLetter(text[i]) && !isDigit(text[i]) && !strings.ContainsRune("-_./:@", rune(text[i])) {
			return false
		}
	}

	if strings.HasSuffix(text, ":") {
		return false
	}

	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf":
		return false
	}

	return true
}

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
