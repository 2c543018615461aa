package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// UnmarshalJSON keeps the object's text with insignificant white space removed, so that the way
// a manifest was formatted never counts as a change. Characters that Go's JSON writer escapes are
// escaped at once: else the stored text would differ from the one in memory, and the next write of
// the same manifest would count as a change. It refuses anything but a JSON object.
func (f *FreeForm) UnmarshalJSON(data []byte) error {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("must be an object: write inline blocks, manifests and values as YAML fields, not as text after |")
	}

	var compact bytes.Buffer
	if err := json.Compact(&compact, trimmed); err != nil {
		return fmt.Errorf("must be an object: %w", err)
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
