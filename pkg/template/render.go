package template

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// Mark is who owns the cluster in Omni. It is part of the template, because the next sync removes every
// annotation of ours that the template does not have.
type Mark struct {
	// UID of the OmniCluster. It and the hub decide about ownership. Required.
	UID string
	// Hub is the ID of the hub that has this OmniCluster. Empty: not written.
	Hub string
	// Namespace of the OmniCluster, for people.
	Namespace string
	// Name of the OmniCluster, for people.
	Name string
	// ManagementCluster is the name of the management cluster, for people. Empty: not written.
	ManagementCluster string
}

// Hub is the management cluster that renders.
type Hub struct {
	// ID tells it apart from others; see package hub.
	ID string
	// Name is for people. May be empty.
	Name string
}

// MarkOf is the mark of an OmniCluster of a hub.
func MarkOf(cluster *v1alpha1.OmniCluster, hub Hub) Mark {
	return Mark{
		UID:               string(cluster.UID),
		Namespace:         cluster.Namespace,
		Name:              cluster.Name,
		Hub:               hub.ID,
		ManagementCluster: hub.Name,
	}
}

// Render writes the template: Cluster, ControlPlane, Workers by name, Machines by ID. The same documents,
// values and mark give the same bytes. The text holds what values returned, which may be secret.
//
// It checks what it needs to write a meaningful text and nothing more: whether Omni accepts the template
// is for Omni's own rules to say.
func (d *Documents) Render(values ValueFunc, mark Mark) ([]byte, error) {
	if mark.UID == "" {
		return nil, errors.New("render template: the owner's UID is missing")
	}

	documents, err := d.build(builder{values: values, within: newBudget()}, mark)
	if err != nil {
		return nil, fmt.Errorf("render template: %w", err)
	}

	text, err := newBudget().encode(len(documents), func(i int) (any, error) { return documents[i], nil })
	if err != nil {
		return nil, fmt.Errorf("render template: %w", err)
	}

	return text, nil
}

// Hash is the sha256 of a rendered template in hexadecimal, as in status.templateHash.
func Hash(rendered []byte) string {
	sum := sha256.Sum256(rendered)

	return hex.EncodeToString(sum[:])
}

func (d *Documents) build(b builder, mark Mark) ([]any, error) {
	cluster, err := b.cluster(d.Cluster, mark)
	if err != nil {
		return nil, fmt.Errorf("OmniCluster %q: %w", d.Cluster.Name, err)
	}

	controlPlane, err := b.controlPlane(d.ControlPlane)
	if err != nil {
		return nil, fmt.Errorf("OmniControlPlane %q: %w", d.ControlPlane.Name, err)
	}

	documents := []any{cluster, controlPlane}

	for i := range d.Workers {
		workers, err := b.workers(&d.Workers[i])
		if err != nil {
			return nil, fmt.Errorf("OmniWorkers %q: %w", d.Workers[i].Name, err)
		}

		documents = append(documents, workers)
	}

	for i := range d.Machines {
		machine, err := b.machine(&d.Machines[i])
		if err != nil {
			return nil, fmt.Errorf("OmniMachine %q: %w", d.Machines[i].Name, err)
		}

		documents = append(documents, machine)
	}

	return documents, nil
}

// InlineText is the text as which Render places inline blocks: YAML with sorted keys, the blocks as documents
// of one stream. A text that is its own InlineText can be kept as an inline block and comes back byte for byte;
// every other text needs a valueFrom for that. The error is about a block that is not a JSON object.
func InlineText(blocks ...v1alpha1.FreeForm) (string, error) {
	return canonicalText(newBudget(), blocks...)
}

// TextNode is a YAML string that every reader takes for that string: quoted wherever some reader could see a
// number, a boolean or a line break of another kind in it. The text must be valid UTF-8.
func TextNode(text string) *yaml.Node { return stringNode(text) }
