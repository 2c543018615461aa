// Package redact makes text that came from outside fit for conditions, events
// and logs: one bounded line, without anything that looks like a secret (Line), and
// without anything of the secrets that are known (Secrets).
//
// Only foreign text goes through it. Our own wording, with names of objects and
// fields, is put around the result, or a Secret that holds the word "cluster"
// would make our own messages unreadable.
package redact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxBytes is the longest text that Line returns, in bytes. A condition message
	// may have 32 KiB, but nobody reads more than a few lines.
	MaxBytes = 1024
	// maxText is how much of a text Line looks at, in bytes.
	maxText = 16 << 10
	// removed stands where something was taken out.
	removed = "[removed]"
)

// The patterns only ever remove text, so a false match costs readability, not safety.
var (
	pgpBlock    = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|\z)`)
	opaqueToken = regexp.MustCompile(`[A-Za-z0-9+/_=.-]{97,}`)
	// Our own end of a broken connection has another port each time: the same
	// failure would be a new message.
	localAddress = regexp.MustCompile(`\b(read|write) (tcp|udp) \S+->`)
	// A name leads to several addresses, and which of them is dialled first changes.
	dialledAddress = regexp.MustCompile(`\bdial (tcp|udp) \S+: `)
	// An expired certificate is expired at another time each time.
	currentTime = regexp.MustCompile(`\bcurrent time \S+ is\b`)
)

// Line makes one bounded line out of any text: line breaks and what is not
// Printable become spaces, PEM or PGP blocks and long opaque words (keys, tokens) are
// replaced, and what differs between two equal failures goes.
func Line(text string) string { return (*Secrets)(nil).Line(text) }

// clean is Line without the secrets that are known, and without its final length.
func clean(text string) string {
	text = pgpBlock.ReplaceAllString(text, removed)
	text = opaqueToken.ReplaceAllString(text, removed)
	text = localAddress.ReplaceAllString(text, "$1 $2 ")
	text = dialledAddress.ReplaceAllString(text, "dial $1: ")
	text = currentTime.ReplaceAllString(text, "current time is")

	return strings.Join(strings.Fields(Printable(text)), " ")
}

// Bounded cuts a text to so many bytes, at a rune boundary, and shows that it did.
func Bounded(text string, limit int) string {
	const mark = "..."

	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

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
