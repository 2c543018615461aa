package parse

import (
	"bytes"
	"encoding/json"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// indexEntry is one version of one chart. The JSON names are Helm's.
type indexEntry struct {
	Version looseText `json:"version"`
	URL     firstText `json:"urls"` // the first, which alone is used
	Digest  looseText `json:"digest"`
}

// looseText is a text, or a number or boolean that somebody did not quote.
type looseText string

// UnmarshalJSON implements json.Unmarshaler.
func (l *looseText) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, (*string)(l))
	case '{', '[':
		return foreign.ErrSyntax
	case 'n': // null
		return nil
	default:
		*l = looseText(raw)

		return nil
	}
}

// firstText is the first of a list of texts.
type firstText string

// UnmarshalJSON implements json.Unmarshaler.
func (f *firstText) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))

	switch open, err := decoder.Token(); {
	case err != nil:
		return foreign.ErrSyntax
	case open == nil: // null
		return nil
	case open != json.Delim('['):
		return foreign.ErrSyntax
	case !decoder.More():
		return nil
	}

	var first looseText
	if err := decoder.Decode(&first); err != nil {
		return foreign.ErrSyntax
	}

	*f = firstText(first)

	return nil
}

// eachMember reads an object and calls read for each key; read reads the value. null is an empty object.
func eachMember(decoder *json.Decoder, read func(key string) error) error {
	return each(decoder, '{', func() error {
		key, err := decoder.Token()
		if err != nil {
			return foreign.ErrSyntax
		}

		name, ok := key.(string)
		if !ok {
			return foreign.ErrSyntax
		}

		return read(name)
	})
}

// eachElement reads a list and calls read for each element, which reads it. null is an empty list.
func eachElement(decoder *json.Decoder, read func() error) error { return each(decoder, '[', read) }

func each(decoder *json.Decoder, bracket json.Delim, read func() error) error {
	open, err := decoder.Token()
	if err != nil {
		return foreign.ErrSyntax
	}

	if open == nil { // null
		return nil
	}

	if open != bracket {
		return foreign.ErrSyntax
	}

	for decoder.More() {
		if err := read(); err != nil {
			return err
		}
	}

	if _, err := decoder.Token(); err != nil { // the closing bracket
		return foreign.ErrSyntax
	}

	return nil
}

// skip reads a value and forgets it.
func skip(decoder *json.Decoder) error {
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return foreign.ErrSyntax
		}

		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}

		if depth == 0 {
			return nil
		}
	}
}
