package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// EncodeValues writes values so that DecodeValues restores them with the types of
// their numbers: templates print, compare and compute with int64, float64 and
// json.Number differently, and plain JSON writes 1.0 as 1.
func EncodeValues(values map[string]any) ([]byte, error) {
	text, err := json.Marshal(marked(values))
	if err != nil {
		return nil, fmt.Errorf("write the values: %w", err)
	}

	return text, nil
}

// marked is a copy of a value whose floats are written with a point or an exponent.
func marked(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(typed))
		for key, member := range typed {
			copied[key] = marked(member)
		}

		return copied
	case []any:
		copied := make([]any, len(typed))
		for i, member := range typed {
			copied[i] = marked(member)
		}

		return copied
	case float64:
		text := strconv.FormatFloat(typed, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}

		return json.Number(text)
	default:
		return value
	}
}

// DecodeValues reads what EncodeValues has written.
func DecodeValues(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	values := map[string]any{}
	if err := decoder.Decode(&values); err != nil {
		return nil, errors.New("the values are no JSON object")
	}

	restored, _ := RestoreNumbers(values).(map[string]any)

	return restored, nil
}

// RestoreNumbers turns the numbers in a decoded value into what templates can compute with, in place. No integer loses a digit by
// that; a number with a fraction or an exponent may.
func RestoreNumbers(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, member := range typed {
			typed[key] = RestoreNumbers(member)
		}
	case []any:
		for i, member := range typed {
			typed[i] = RestoreNumbers(member)
		}
	case json.Number:
		if integer, err := strconv.ParseInt(typed.String(), 10, 64); err == nil {
			return integer
		}

		if strings.ContainsAny(typed.String(), ".eE") {
			if float, err := typed.Float64(); err == nil {
				return float
			}
		}
	}

	return value
}
