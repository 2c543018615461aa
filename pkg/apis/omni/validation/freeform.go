package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

const (
	// maxFreeForm is the largest size of one free-form block, in bytes of compact JSON.
	maxFreeForm = 256 << 10
	// maxDepth is how deep objects and lists of one block may be nested. No real document comes near it, and
	// indenting a block of thousands of levels would take gigabytes.
	maxDepth = 128
	// maxNumberWarnings bounds the warnings on one block.
	maxNumberWarnings = 3
)

// validateFreeForm checks the size and the depth of a block, which may consist of several objects. remedy says how to
// make the block smaller.
func validateFreeForm(path *field.Path, remedy string, blocks ...v1alpha1.FreeForm) field.ErrorList {
	size := 0

	for i := range blocks {
		if size += len(blocks[i].Raw); foreign.DepthOfJSON(blocks[i].Raw) > maxDepth {
			return field.ErrorList{invalidValue(path, fmt.Sprintf("is nested deeper than %d levels: make it flatter", maxDepth))}
		}
	}

	if size <= maxFreeForm {
		return nil
	}

	return field.ErrorList{invalidValue(path, fmt.Sprintf("has %d KiB, at most %d KiB fit: %s", (size+1023)>>10, maxFreeForm>>10, remedy))}
}

// warningsForNumbers advises quoting integers that server-side apply would change: it decodes integers of more than
// 64 bits as floats.
func warningsForNumbers(block *v1alpha1.FreeForm, path *field.Path) []string {
	if block == nil {
		return nil
	}

	found := findBigIntegers(block.Raw, path)

	var warnings []string

	for i, at := range found {
		if i == maxNumberWarnings {
			warnings = append(warnings, warning(path, fmt.Sprintf("%d more integers of 2^63 or more: quote them", len(found)-i)))

			break
		}

		warnings = append(warnings, warning(at, "quote an integer of 2^63 or more: server-side apply rounds it"))
	}

	return warnings
}

// findBigIntegers returns the path of every unquoted integer of 2^63 or more, in the order of the text.
func findBigIntegers(raw []byte, path *field.Path) []*field.Path {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()

	var found []*field.Path

	var walk func(at *field.Path) error

	walk = func(at *field.Path) error {
		token, err := decoder.Token()
		if err != nil {
			return err
		}

		switch token := token.(type) {
		case json.Number:
			if isBigInteger(token) {
				found = append(found, at)
			}
		case json.Delim:
			return walkMembers(decoder, token, at, walk)
		}

		return nil
	}

	// The text was valid when the object was decoded; an invalid one ends the walk.
	_ = walk(path)

	return found
}

// walkMembers walks the members of the object or array whose opening delimiter was just read.
func walkMembers(decoder *json.Decoder, open json.Delim, at *field.Path, walk func(*field.Path) error) error {
	for index := 0; decoder.More(); index++ {
		member := at.Index(index)

		if open == '{' {
			key, err := decoder.Token()
			if err != nil {
				return err
			}

			name, ok := key.(string)
			if !ok {
				return io.ErrUnexpectedEOF
			}

			member = childOrKey(at, name)
		}

		if err := walk(member); err != nil {
			return err
		}
	}

	_, err := decoder.Token()

	return err
}

// childOrKey writes simple member names as ".name" and others, such as "a.b/c", as "[a.b/c]".
func childOrKey(at *field.Path, name string) *field.Path {
	if name == "" || strings.ContainsAny(name, ".[]/ ") {
		return at.Key(name)
	}

	return at.Child(name)
}

func isBigInteger(number json.Number) bool {
	integer, ok := new(big.Int).SetString(string(number), 10)

	return ok && !integer.IsInt64()
}

// canonicalJSON encodes a block again: numbers as they are written, and texts as plain UTF-8, which YAML parsers read
// even if they do not know JSON's surrogate escapes.
func canonicalJSON(raw []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()

	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}

	return json.Marshal(value)
}
