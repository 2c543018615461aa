package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// Write writes objects as YAML documents: fields in the order of their types, without a status and without what
// only the server sets. The same objects give the same bytes. Texts are quoted so that every reader takes them
// for texts, and numbers keep their digits.
func Write(w io.Writer, objects []runtime.Object) error {
	for i, object := range objects {
		node, err := nodeOf(object)
		if err != nil {
			return fmt.Errorf("write a %s: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
		}

		var text bytes.Buffer
		if i > 0 {
			text.WriteString("---\n")
		}

		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(2)

		if err := errors.Join(encoder.Encode(node), encoder.Close()); err != nil {
			return fmt.Errorf("write a %s: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
		}

		if _, err := w.Write(text.Bytes()); err != nil {
			return fmt.Errorf("write the manifests: %w", err)
		}
	}

	return nil
}

func nodeOf(object runtime.Object) (*yaml.Node, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}

	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()

	node, err := readValue(decoder)
	if err != nil {
		return nil, err
	}

	removeMember(node, "status")

	// People expect the version first; the Go type has the kind there.
	if version := member(node, "apiVersion"); version != nil {
		removeMember(node, "apiVersion")
		node.Content = append([]*yaml.Node{template.TextNode("apiVersion"), version}, node.Content...)
	}

	if metadata := member(node, "metadata"); metadata != nil {
		removeMember(metadata, "creationTimestamp")
	}

	return node, nil
}

// readValue keeps the order of the members, which is that of the Go type.
func readValue(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}

	switch value := token.(type) {
	case json.Delim:
		return readMembers(decoder, value)
	case string:
		return template.TextNode(value), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: value.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(value)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

func readMembers(decoder *json.Decoder, open json.Delim) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}

	// The members of an object come as key, value, key, value.
	for decoder.More() {
		child, err := readValue(decoder)
		if err != nil {
			return nil, err
		}

		node.Content = append(node.Content, child)
	}

	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}

	_, err := decoder.Token() // the closing bracket

	return node, err
}

func member(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}

	return nil
}

func removeMember(node *yaml.Node, key string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			node.Content = append(node.Content[:i], node.Content[i+2:]...)

			return
		}
	}
}
