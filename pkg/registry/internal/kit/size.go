package kit

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// size is the length of the texts in a value, the number of its values, and the length of its JSON texts times their
// depth.
type size struct{ values, bytes, rests int64 }

func (s size) and(other size) size {
	return size{values: s.values + other.values, bytes: s.bytes + other.bytes, rests: s.rests + other.rests}
}

// sizeOf counts without allocating. It skips times, which hold the tables of their zone.
func sizeOf(value reflect.Value) size {
	total := size{values: 1}

	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return size{}
		}

		// By the build tag fieldsv1string its text is a string, which would count as one value.
		if value.Type() == reflect.TypeFor[*metav1.FieldsV1]() {
			return sizeOfText(value.Interface().(*metav1.FieldsV1).GetRawString())
		}

		return sizeOf(value.Elem())
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[metav1.Time]() {
			return total
		}

		for i := range value.NumField() {
			total = total.and(sizeOf(value.Field(i)))
		}
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			total = total.and(sizeOf(entries.Key())).and(sizeOf(entries.Value()))
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return sizeOfText(value.Bytes())
		}

		for i := range value.Len() {
			total = total.and(sizeOf(value.Index(i)))
		}
	case reflect.String:
		total.bytes = int64(value.Len())
	default:
	}

	return total
}

// sizeOfText counts the values of a JSON text: one of these characters precedes each value but the first.
func sizeOfText[Text string | []byte](text Text) size {
	total := size{values: 1, bytes: int64(len(text)), rests: int64(len(text)) * int64(foreign.DepthOfJSON(text))}

	for i := range len(text) {
		switch text[i] {
		case ',', ':', '[', '{':
			total.values++
		}
	}

	return total
}
