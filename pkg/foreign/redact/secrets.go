package redact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// Window is the length of a piece, in bytes: of a value that has as many, no
	// piece of this length remains in a text.
	Window = 8
	// Shortest is the length of the shortest value that is removed, in bytes. Values
	// from there up to Window go where they stand as a whole word. Removing every
	// "a" would leave no message, and hide nothing.
	Shortest = 4

	// segment is how much of a text is looked at together, in bytes, and overlap is
	// what two neighbours share: no piece takes more, however it is escaped.
	segment = 4 << 10
	overlap = 512
)

// Secrets are values that no text may show, whole or in part. Nil holds none. It is
// safe for concurrent use as long as nothing is added.
//
// A piece of a value is found as it is, and as it is written inside JSON, YAML, Go's
// quotes, URLs and HTML (up to three of them around each other), in base64 of any
// alphabet and alignment, and in hexadecimal. What is removed is the largest stretch
// of text that consists of pieces, and a text that is escaped in more ways than
// anybody can follow goes as a whole. White space and control characters count as one
// space, as Line writes them.
//
// Removing costs time by the bytes of all values and memory by those of the text:
// the values, which may be large and many, are only read.
type Secrets struct {
	values []string
}

// Of makes Secrets of values.
func Of(values ...string) *Secrets {
	s := &Secrets{}
	s.Add(values...)

	return s
}

// Add adds values.
func (s *Secrets) Add(values ...string) {
	for _, value := range values {
		if len(value) < Shortest {
			continue
		}

		s.values = append(s.values, value)

		// What is quoted inside, as in a Docker configuration, may be shown without its quotes.
		if plain, found := unescape(value); found {
			s.values = append(s.values, plain)
		}
	}
}

// With returns Secrets that hold the values of both.
func (s *Secrets) With(other *Secrets) *Secrets {
	if s == nil {
		return other
	}

	both := &Secrets{values: s.values[:len(s.values):len(s.values)]}
	if other != nil {
		both.values = append(both.values, other.values...)
	}

	return both
}

// Empty reports whether there is nothing to remove.
func (s *Secrets) Empty() bool { return s == nil || len(s.values) == 0 }

// String keeps the values out of texts.
func (s *Secrets) String() string { return "[secrets]" }

// GoString keeps the values out of texts.
func (s *Secrets) GoString() string { return s.String() }

// Line is the function Line, without anything of the values.
func (s *Secrets) Line(text string) string {
	return Bounded(s.Remove(clean(Bounded(text, maxText))), MaxBytes)
}

// Error returns an error that says what err says, on one line and without anything
// of the values. errors.Is and errors.As still find what it wraps. Nil stays nil.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}

	return &redactedError{text: s.Line(err.Error()), cause: err}
}

// redactedError is an error with another text.
type redactedError struct {
	text  string
	cause error
}

// Error implements error.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *redactedError) Unwrap() error { return e.cause }

// Remove takes everything of the values out of a text of any length, and changes
// nothing else.
func (s *Secrets) Remove(text string) string {
	if s.Empty() {
		return text
	}

	covered := make([]bool, len(text))

	for start := 0; start < len(text); start += segment - overlap {
		end := min(start+segment, len(text))
		s.cover(text[start:end], covered[start:end])
	}

	return rewrite(text, covered)
}

// cover marks the bytes of a text that belong to pieces of the values.
func (s *Secrets) cover(text string, covered []bool) {
	found := newPieces(text)
	if found.hiding {
		for i := range covered {
			covered[i] = true
		}

		return
	}

	for _, value := range s.values {
		found.scan(value, covered)
	}
}

// rewrite replaces each covered stretch of a text.
func rewrite(text string, covered []bool) string {
	if !slices.Contains(covered, true) {
		return text
	}

	var written strings.Builder

	for i := 0; i < len(text); {
		from := i
		for i < len(text) && covered[i] == covered[from] {
			i++
		}

		stretch := text[from:i]
		if !covered[from] {
			written.WriteString(stretch)

			continue
		}

		// Spaces around it stay: a piece that went on beyond them would be covered, too.
		inner := strings.Trim(stretch, " ")
		before, after, _ := strings.Cut(stretch, inner)
		written.WriteString(before + removed + after)
	}

	if !utf8.ValidString(text) {
		return written.String()
	}

	return strings.ToValidUTF8(written.String(), "") // no part of a character stays behind
}

// Leaves are the texts and numbers in a value that JSON was decoded into (maps,
// lists, strings, numbers). A password may be written without quotes.
func Leaves(value any) []string { return leaves(nil, value) }

func leaves(texts []string, value any) []string {
	switch typed := value.(type) {
	case map[string]any:
		for _, member := range typed {
			texts = leaves(texts, member)
		}
	case []any:
		for _, member := range typed {
			texts = leaves(texts, member)
		}
	case string:
		texts = append(texts, typed)
	case int64, float64, json.Number:
		texts = append(texts, fmt.Sprint(typed))
	}

	return texts
}
