package kit

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// sameJSON reports whether two JSON texts say the same: the order of keys does not count, and neither does the way in which
// a character is escaped. Numbers are the same only if they are written the same: 1.0 and 1.10 may be versions, and floats
// would make neighbours of large integers equal. Of a key that comes twice the last one counts.
func sameJSON(a, b []byte) bool {
	first, err := decodeExactly(a)
	if err != nil {
		return false
	}

	second, err := decodeExactly(b)

	return err == nil && reflect.DeepEqual(first, second)
}

// decodeExactly decodes a text with every number as it is written.
func decodeExactly(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var value any

	err := decoder.Decode(&value)

	return value, err // nobody sees it
}
