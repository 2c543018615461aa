package lists

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// maxForPeople is the largest object, in bytes of JSON, that is indented (with pretty=true, which curl and browsers
// get without asking, and as YAML). A larger object is written on one line, which is valid JSON and YAML: indenting
// one deeply nested object can take a hundred times its size.
const maxForPeople = 64 << 10

// PerElement returns the serializer with encoders that encode lists element by element also in the indented formats.
// The library does so for compact JSON only, and for other lists needs up to seven times their length in memory. The
// encoder of tables cannot be replaced.
func PerElement(serializer runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return perElement{serializer}
}

// perElement is the serializer that PerElement returns.
type perElement struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes replaces the encoders.
func (s perElement) SupportedMediaTypes() []runtime.SerializerInfo {
	offered := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())

	for i := range offered {
		switch info := &offered[i]; info.MediaType {
		case runtime.ContentTypeJSON:
			info.PrettySerializer = partsEncoder{info.PrettySerializer, prettyJSON{}}
		case runtime.ContentTypeYAML:
			info.Serializer = partsEncoder{info.Serializer, blockYAML{}}
		}
	}

	return offered
}

// errNoPlace cannot occur for the lists that split returns.
var errNoPlace = errors.New("there is no place for the elements")

// partsEncoder is a serializer of the library with another way to encode.
type partsEncoder struct {
	runtime.Serializer
	layout layout
}

// Encode writes the object.
func (e partsEncoder) Encode(obj runtime.Object, w io.Writer) error {
	if cached, ok := obj.(runtime.CacheableObject); ok {
		return cached.CacheEncode(e.Identifier(), e.Encode, w) // our own error
	}

	if empty, elements := split(obj); elements != nil {
		return e.encodeAll(empty, elements, w)
	}

	encoded, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode %T: %w", obj, err)
	}

	whole, err := e.layout.whole(encoded)
	if err != nil {
		return fmt.Errorf("lay out %T: %w", obj, err)
	}

	_, err = w.Write(whole)

	return err
}

func (e partsEncoder) encodeAll(empty any, elements []any, w io.Writer) error {
	encoded, err := json.Marshal(empty)
	if err != nil {
		return fmt.Errorf("encode %T: %w", empty, err)
	}

	before, after, err := e.layout.around(encoded)
	if err != nil {
		return fmt.Errorf("lay out %T: %w", empty, err)
	}

	// The library compresses an answer in parts if the first part is short, so the first part is one byte.
	for _, part := range [][]byte{before[:1], before[1:]} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}

	for i, element := range elements {
		encoded, err := json.Marshal(element)
		if err != nil {
			return fmt.Errorf("encode %T: %w", element, err)
		}

		part, err := e.layout.element(encoded, i == 0)
		if err != nil {
			return fmt.Errorf("lay out %T: %w", element, err)
		}

		if _, err := w.Write(part); err != nil {
			return err
		}
	}

	_, err = w.Write(after)

	return err
}

// split removes the elements from a list and returns them as pointers. It returns none for other objects and for
// empty lists.
func split(obj runtime.Object) (empty any, elements []any) {
	pointer := reflect.ValueOf(obj)
	if _, special := obj.(json.Marshaler); special || pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		return nil, nil
	}

	// The items come last, so that in JSON they are at the end.
	last := pointer.Elem().NumField() - 1
	if last < 0 || pointer.Type().Elem().Field(last).Tag.Get("json") != "items" || pointer.Elem().Field(last).Kind() != reflect.Slice {
		return nil, nil
	}

	all := pointer.Elem().Field(last)
	for i := range all.Len() {
		elements = append(elements, all.Index(i).Addr().Interface())
	}

	shell := reflect.New(pointer.Type().Elem())
	shell.Elem().Set(pointer.Elem())
	shell.Elem().Field(last).Set(reflect.MakeSlice(all.Type(), 0, 0))

	return shell.Interface(), elements
}
