package redact

import (
	"bytes"
	"html"
	"reflect"
	"strconv"
	"strings"
	"unicode"
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

// unit reads an escape of JSON, such as \u0041.
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

// Printable makes a text show what it says and nothing else: what a terminal carries out, what turns the direction of a text, what
// cannot be seen and what ends a line become spaces.
func Printable(text string) string { return strings.Map(printable, text) }

func printable(r rune) rune {
	if unicode.IsGraphic(r) {
		return r
	}

	return ' '
}

// IsPrintable reports whether Printable would change none of the texts of a value. Line breaks may be there.
func IsPrintable(value any) bool { return !visit(reflect.ValueOf(value), false) }

// MakePrintable has all texts of what a pointer leads to show what they say, line by line. Nobody else may have the value, nor a part of it.
func MakePrintable(pointer any) { visit(reflect.ValueOf(pointer), true) }

// visit goes through all texts of a value, and reports whether Printable would change any. If change is set, it is changed.
func visit(value reflect.Value, change bool) (found bool) {
	switch value.Kind() { //nolint:exhaustive // the others have no text
	case reflect.Pointer, reflect.Interface:
		return !value.IsNil() && visit(value.Elem(), change)
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				found = visit(value.Field(i), change) || found
			}
		}
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return false
		}

		for i := range value.Len() {
			found = visit(value.Index(i), change) || found
		}
	case reflect.Map:
		return visitMap(value, change)
	case reflect.String:
		text := printableLines(value.String())
		found = text != value.String()

		if found && change {
			value.SetString(text)
		}
	}

	return found
}

// visitMap replaces entries, because those of a map cannot be changed.
func visitMap(value reflect.Value, change bool) (found bool) {
	for _, key := range value.MapKeys() {
		name, item := reflect.New(key.Type()).Elem(), reflect.New(value.Type().Elem()).Elem()
		name.Set(key)
		item.Set(value.MapIndex(key))

		inName, inItem := visit(name, change), visit(item, change)
		found = found || inName || inItem

		if change && (inName || inItem) {
			value.SetMapIndex(key, reflect.Value{})
			value.SetMapIndex(name, item)
		}
	}

	return found
}

func printableLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}

		return printable(r)
	}, text)
}
