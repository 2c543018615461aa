package foreign

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Size is what a text, or a part of it, becomes, with each alias counted as what it stands for.
type Size struct {
	// Nodes is how many maps, lists, keys and values there are.
	Nodes int
	// Bytes is how many bytes all keys and values have together.
	Bytes int
	// Depth is how many maps and lists stand inside of each other at the most.
	Depth int
}

// And is the size of two texts together, or of two parts that stand beside each other.
func (s Size) And(other Size) Size {
	return Size{Nodes: s.Nodes + other.Nodes, Bytes: s.Bytes + other.Bytes, Depth: max(s.Depth, other.Depth)}
}

// errCircular says that an alias stands inside of what it stands for.
var errCircular = errors.New("has an alias that contains itself: write the value out")

// measure computes the size of YAML documents without expanding an alias: what an anchor becomes is computed once.
// It ends as soon as a limit is exceeded, so that no sum overflows.
type measure struct {
	limits  Limits
	anchors map[*yaml.Node]*Size // nil while the anchor itself is being measured
}

func newMeasure(limits Limits) *measure {
	return &measure{limits: limits, anchors: map[*yaml.Node]*Size{}}
}

// of returns the size of a node, or what refuses it.
func (m *measure) of(node *yaml.Node) (Size, error) {
	if node.Kind == yaml.AliasNode {
		if m.limits.NoAliases {
			return Size{}, ErrAlias
		}

		return m.ofAnchor(node.Alias)
	}

	if node.Anchor != "" {
		return m.ofAnchor(node)
	}

	return m.ofContent(node)
}

func (m *measure) ofAnchor(node *yaml.Node) (Size, error) {
	known, seen := m.anchors[node]
	if seen && known == nil {
		return Size{}, errCircular
	}

	if seen {
		return *known, nil
	}

	m.anchors[node] = nil

	found, err := m.ofContent(node)
	if err != nil {
		return Size{}, err
	}

	m.anchors[node] = &found

	return found, nil
}

func (m *measure) ofContent(node *yaml.Node) (Size, error) {
	total := Size{Nodes: 1, Bytes: len(node.Value)}

	for _, child := range node.Content {
		one, err := m.of(child)
		if err != nil {
			return Size{}, err
		}

		if total = total.And(one); m.limits.allow(total) != nil {
			return Size{}, m.limits.allow(total)
		}
	}

	if node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode {
		total.Depth++
	}

	return total, m.limits.allow(total)
}

// allow returns a *LimitError if something of that size may not be.
func (l Limits) allow(s Size) error {
	switch {
	case s.Depth > l.Depth:
		return &LimitError{Depth, l.Depth}
	case s.Nodes > l.Nodes:
		return &LimitError{Nodes, l.Nodes}
	case s.Bytes > l.Expanded:
		return &LimitError{Expanded, l.Expanded}
	default:
		return nil
	}
}

// sizeOfJSON measures a valid JSON text by its punctuation; nothing is decoded. Each comma stands before a member,
// each colon between a key and a value, and a map or list that is not empty has one member more than commas.
func sizeOfJSON(text []byte) Size {
	var (
		total = Size{Nodes: 1}
		open  int
		last  byte // outside of strings and white space
	)

	for i := 0; i < len(text); i++ {
		character := text[i]

		switch character {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			end := endOfString(text, i)
			total.Bytes += end - i - 1
			i = end
		case '{', '[':
			open++
			total.Nodes++
			total.Depth = max(total.Depth, open)
		case '}', ']':
			open--

			if last == '{' || last == '[' {
				total.Nodes--
			}
		case ',', ':':
			total.Nodes++
		default:
			total.Bytes++
		}

		last = character
	}

	return total
}

// DepthOfJSON is how deep objects and lists are nested in a valid JSON text; 0 for a text, a number or null.
func DepthOfJSON[Text string | []byte](raw Text) int {
	deepest, current, quoted := 0, 0, false

	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++ // only strings have backslashes; whatever is escaped, it ends nothing
		case '"':
			quoted = !quoted
		case '{', '[':
			if !quoted {
				current++
				deepest = max(deepest, current)
			}
		case '}', ']':
			if !quoted {
				current--
			}
		}
	}

	return deepest
}

// endOfString is where the string that begins at start ends: the index of its closing quote.
func endOfString(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}

	return len(text)
}

// Limits bound what a text may become. All numbers must be more than 0.
type Limits struct {
	// Bytes is the largest length of the text as it comes, in bytes.
	Bytes int
	// Depth is how deep maps and lists may be nested.
	Depth int
	// Nodes is how many maps, lists, keys and values there may be, with each alias counted as what it stands for.
	Nodes int
	// Expanded is how many bytes all keys and values may have together, with each alias counted as what it stands
	// for.
	Expanded int
	// NoAliases refuses a text with an alias.
	NoAliases bool
}

var (
	// ErrSyntax says that a text is neither YAML nor JSON.
	ErrSyntax = errors.New("is neither YAML nor JSON")
	// ErrAlias says that a text has an alias where none may be.
	ErrAlias = errors.New("has YAML aliases (*name), which are not expanded here: write each value out where it belongs")
)

// LimitError says which limit a text exceeds. Its text continues a sentence that begins with the name of the text.
type LimitError struct {
	// What is counted.
	What Quantity
	// Limit is how much of it is allowed.
	Limit int
}

// Quantity is what a limit counts.
type Quantity string

// The quantities, one for each field of Limits. Inflated counts the bytes of a compressed text.
const (
	Bytes    Quantity = "bytes"
	Depth    Quantity = "depth"
	Nodes    Quantity = "nodes"
	Expanded Quantity = "expanded"
	Inflated Quantity = "inflated"
)

// Error implements error.
func (e *LimitError) Error() string {
	switch e.What {
	case Depth:
		return fmt.Sprintf("is nested deeper than %d levels: make it flatter", e.Limit)
	case Nodes:
		return fmt.Sprintf("has more than %d values, counting each alias as what it stands for: make it smaller", e.Limit)
	case Expanded:
		return fmt.Sprintf("grows to more than %d bytes once its aliases are replaced by what they stand for: use fewer aliases", e.Limit)
	case Inflated:
		return fmt.Sprintf("is compressed and has more than %d bytes when it is not", e.Limit)
	case Bytes:
		fallthrough
	default:
		return fmt.Sprintf("has more than %d bytes: make it smaller", e.Limit)
	}
}
