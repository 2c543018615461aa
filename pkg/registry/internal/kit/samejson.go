package kit

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// sameJSON reports whether two JSON texts are equivalent: neither the order of keys nor the escaping of characters
// counts. Numbers are equal only if they are written the same: 1.0 and 1.10 may be versions, and as floats
// neighbouring large integers would be equal. If a key occurs twice, the last one counts.
func sameJSON(a, b []byte) bool {
	first, err := decodeExactly(a)
	if err != nil {
		return false
	}

	second, err := decodeExactly(b)

	return err == nil && reflect.DeepEqual(first, second)
}

// decodeExactly decodes a text and keeps every number as it is written.
func decodeExactly(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var value any

	err := decoder.Decode(&value)

	return value, err
}
