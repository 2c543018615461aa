package redact

import (
	"reflect"
	"strings"
	"unicode"
)

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
