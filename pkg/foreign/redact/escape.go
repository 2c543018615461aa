package redact

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape takes one layer of quotes off a text.
func unescape(text string) (string, bool) {
	if strings.IndexByte(text, '\\') < 0 {
		return text, false
	}

	var plain strings.Builder

	for rest := []byte(text); len(rest) > 0; {
		written, length := escape(rest)
		if length == 0 {
			written, length = string(rest[:1]), 1
		}

		plain.WriteString(written)
		rest = rest[length:]
	}

	return plain.String(), true
}

// escape reads an escape of Go, JSON or YAML. Of one that none of them has, the
// character after the backslash counts.
func escape(rest []byte) (string, int) {
	if len(rest) < 2 || rest[0] != '\\' {
		return "", 0
	}

	if high, ok := unit(rest); ok && utf16.IsSurrogate(high) {
		if low, ok := unit(rest[6:]); ok {
			return string(utf16.DecodeRune(high, low)), 12
		}

		return string(utf8.RuneError), 6
	}

	head := string(rest[:min(len(rest), 10)])

	c, wide, tail, err := strconv.UnquoteChar(head, 0)
	switch {
	case err != nil:
		return head[1:2], 2
	case c >= utf8.RuneSelf && !wide: // \xff is a byte
		return string([]byte{byte(c)}), len(head) - len(tail) //nolint:gosec // below 256 then
	default:
		return string(c), len(head) - len(tail)
	}
}

// unit reads \uXXXX.
func unit(rest []byte) (rune, bool) {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return 0, false
	}

	value, err := strconv.ParseUint(string(rest[2:6]), 16, 16)

	return rune(value), err == nil
}

// percent reads %XX of a URL.
func percent(rest []byte) (string, int) {
	if len(rest) < 3 || rest[0] != '%' {
		return "", 0
	}

	high, ok := hexValue(rest[1])
	low, also := hexValue(rest[2])

	if !ok || !also {
		return "", 0
	}

	return string([]byte{byte(high<<4 | low)}), 3 //nolint:gosec // two digits
}

// query is percent in the query of a URL.
func query(rest []byte) (string, int) {
	if rest[0] == '+' {
		return " ", 1
	}

	return percent(rest)
}

// entity reads an entity of HTML, such as &#34;.
func entity(rest []byte) (string, int) {
	if rest[0] != '&' {
		return "", 0
	}

	end := bytes.IndexByte(rest[:min(len(rest), 10)], ';')
	if end < 0 {
		return "", 0
	}

	name := string(rest[:end+1])
	if plain := html.UnescapeString(name); plain != name {
		return plain, end + 1
	}

	return "", 0
}

// doubledQuote reads a single quote between single quotes of YAML.
func doubledQuote(rest []byte) (string, int) {
	if len(rest) < 2 || rest[0] != '\'' || rest[1] != '\'' {
		return "", 0
	}

	return "'", 2
}

func base64Value(c byte) (int, bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A'), true
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26, true
	case c >= '0' && c <= '9':
		return int(c-'0') + 52, true
	case c == '+', c == '-':
		return 62, true
	case c == '/', c == '_':
		return 63, true
	default:
		return 0, false
	}
}

func hexValue(c byte) (int, bool) {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0'), true
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10, true
	default:
		return 0, false
	}
}
