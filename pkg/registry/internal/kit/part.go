package kit

import (
	"encoding/json"
	"reflect"
)

// PartOf makes a Part from the function that returns it from an object.
//
// Comparison is strict: unset and empty differ, because they mean different things to Omni.
func PartOf[T, P any](find func(T) *P) Part[T] {
	return Part[T]{
		copy:  func(dst, src T) { *find(dst) = *find(src) },
		equal: func(a, b T) bool { return reflect.DeepEqual(find(a), find(b)) },
		encode: func(obj T) ([]byte, error) {
			return json.Marshal(find(obj)) // it names the type
		},
	}
}
