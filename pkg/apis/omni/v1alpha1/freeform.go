package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// UnmarshalJSON keeps the object's text without insignificant white space, so that the formatting of a manifest never
// counts as a change. Characters that Go's JSON encoder escapes are escaped here: otherwise the stored text would
// differ from the one in memory, and the next write of the same manifest would count as a change. It refuses anything
// but a JSON object, and numbers beyond the range of a 64-bit float, which the library's field ownership cannot read.
func (f *FreeForm) UnmarshalJSON(data []byte) error {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("must be an object: write inline blocks, manifests and values as YAML fields, not as text after |")
	}

	var compact bytes.Buffer
	if err := json.Compact(&compact, trimmed); err != nil {
		return fmt.Errorf("must be an object: %w", err)
	}

	readable, err := readableText(compact.Bytes())
	if err != nil {
		return err
	}

	var escaped bytes.Buffer

	json.HTMLEscape(&escaped, readable)
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

// readableText returns the text with surrogate escapes (\ud83d\ude00) replaced by their characters, because the
// library's YAML encoders fail on them, and with invalid UTF-8 replaced by U+FFFD, as Go does in other texts. It
// refuses numbers beyond the range of a 64-bit float, such as 1e400; numbers that only lose digits as a float stay as
// they are.
func readableText(compact []byte) ([]byte, error) {
	text := make([]byte, 0, len(compact))

	for rest := compact; len(rest) > 0; {
		length := tokenLength(rest)
		token := rest[:length]
		rest = rest[length:]

		switch {
		case token[0] == '-' || '0' <= token[0] && token[0] <= '9':
			if _, err := strconv.ParseFloat(string(token), 64); err != nil {
				return nil, fmt.Errorf("number %.40s is too large: quote it", token)
			}
		case token[0] == '"' && (!utf8.Valid(token) || bytes.Contains(token, []byte(`\ud`)) || bytes.Contains(token, []byte(`\uD`))):
			var value string
			if err := json.Unmarshal(token, &value); err != nil {
				return nil, fmt.Errorf("must be an object: %w", err)
			}

			written, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("must be an object: %w", err)
			}

			token = written
		}

		text = append(text, token...)
	}

	return text, nil
}

// tokenLength returns the length of the first string, number or other byte of a valid, compact JSON text.
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
