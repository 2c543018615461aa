package foreign

import (
	"errors"
	"fmt"
)

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
