package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// UnmarshalJSON keeps the object's text with insignificant white space removed, so that the way
// a manifest was formatted never counts as a change. Characters that Go's JSON writer escapes are
// escaped at once: else the stored text would differ from the one in memory, and the next write of
// the same manifest would count as a change. It refuses anything but a JSON object, and numbers whose
// magnitude no 64-bit float has: the library's field ownership cannot read those.
func (f *FreeForm) UnmarshalJSON(data []byte) error {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("must be an object: write inline blocks, manifests and values as YAML fields, not as text after |")
	}

	var compact bytes.Buffer
	if err := json.Compact(&compact, trimmed); err != nil {
		return fmt.Errorf("must be an object: %w", err)
	}

	if err := checkNumbers(compact.Bytes()); err != nil {
		return err
	}

	var escaped bytes.Buffer

	json.HTMLEscape(&escaped, compact.Bytes())
	f.Raw = escaped.Bytes()

	return nil
}

// MarshalJSON writes the text as it was read; an empty value is an empty object.
func (f FreeForm) MarshalJSON() ([]byte, error) {
	if len(f.Raw) == 0 {
		return []byte("{}"), nil
	}

	return f.Raw, nil
}

// checkNumbers refuses numbers such as 1e400, beyond the range of a 64-bit float. Those that merely
// lose digits there pass.
func checkNumbers(compact []byte) error {
	for rest := compact; len(rest) > 0; {
		length := tokenLength(rest)
		token := rest[:length]
		rest = rest[length:]

		if token[0] != '-' && (token[0] < '0' || token[0] > '9') {
			continue
		}

		if _, err := strconv.ParseFloat(string(token), 64); err != nil {
			return fmt.Errorf("number %.40s is too large: quote it", token)
		}
	}

	return nil
}

// tokenLength is the length of the first string, number or other byte of a valid, compact JSON text.
func tokenLength(text []byte) int {
	if text[0] == '"' {
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}

		return len(text)
	}

	if end := bytes.IndexAny(text, `,:]}{["`); end > 0 {
		return end
	}

	return 1
}
