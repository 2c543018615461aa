package redact

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

const (
	// maxQuotes is how many layers of quotes around a value are taken off: Go's around
	// the JSON of a webhook, inside the JSON of an answer.
	maxQuotes = 3
	// maxReadings is how often a text may be read in another way. One without escapes
	// is read six times or so.
	maxReadings = 60
)

// reading is one way to read a text, with the place of each byte in the text.
type reading struct {
	text     []byte
	from, to []int32
}

// readingOf reads a text as it is.
func readingOf(text string) *reading {
	r := newReading(len(text))
	for i := range len(text) {
		r.add(text[i:i+1], int32(i), int32(i+1)) // a segment is short
	}

	return r
}

func newReading(size int) *reading {
	return &reading{text: make([]byte, 0, size), from: make([]int32, 0, size), to: make([]int32, 0, size)}
}

func (r *reading) add(text string, from, to int32) {
	for i := range len(text) {
		r.text, r.from, r.to = append(r.text, text[i]), append(r.from, from), append(r.to, to)
	}
}

// replace reads what stands for something else: at is asked at each byte what
// stands there, and for how many bytes; none means the byte itself. It returns nil
// if nothing does.
func (r *reading) replace(at func(rest []byte) (text string, length int)) *reading {
	first := 0
	for ; first < len(r.text); first++ {
		if _, length := at(r.text[first:]); length > 0 {
			break
		}
	}

	if first == len(r.text) {
		return nil
	}

	replaced := newReading(len(r.text))

	for i := 0; i < len(r.text); {
		text, length := at(r.text[i:])
		if length == 0 {
			text, length = string(r.text[i:i+1]), 1
		}

		replaced.add(text, r.from[i], r.to[i+length-1])
		i += length
	}

	return replaced
}

// bits reads characters of an alphabet as so many bits each, and passes over all
// others: line breaks, quotes, padding. The first skip characters are left out.
func (r *reading) bits(width, skip int, value func(byte) (bits int, ok bool)) *reading {
	decoded := newReading(len(r.text) * width / 8)

	var (
		held, count int
		from        int32 // of the first bit that is held
	)

	for i, c := range r.text {
		bits, ok := value(c)
		if !ok {
			continue
		}

		if skip > 0 {
			skip--

			continue
		}

		if count == 0 {
			from = r.from[i]
		}

		held, count = held<<width|bits, count+width

		if count >= 8 {
			count -= 8
			decoded.text = append(decoded.text, byte(held>>count)) //nolint:gosec // eight bits are left
			decoded.from, decoded.to = append(decoded.from, from), append(decoded.to, r.to[i])
			held &= 1<<count - 1
			from = r.from[i]
		}
	}

	return decoded
}

// readings are all ways to read one text.
type readings struct {
	each  func(r *reading, words bool, literal int32)
	known map[string]bool
	left  int // bytes that the readings may have together
}

// readingsOf calls each for every way to read a text. Words tells whether words have
// their boundaries there. A stretch that takes literal bytes of the text, or fewer,
// was in an earlier reading. It returns false for a text with so many layers of
// escapes that only somebody who wants to hide something writes it.
func readingsOf(text string, each func(r *reading, words bool, literal int32)) bool {
	all := &readings{each: each, known: map[string]bool{}, left: maxReadings * max(len(text), 1<<10)}
	all.quoted(readingOf(text), 0)

	return all.left >= 0
}

// quoted goes through a reading, and what remains of it when quotes are taken off.
func (a *readings) quoted(r *reading, depth int) {
	if r == nil || a.known[string(r.text)] || a.left < 0 {
		return
	}

	a.known[string(r.text)] = true
	first := len(a.known) == 1

	a.one(r, true, first, Window)

	for skip := range 4 {
		a.encoded(r.bits(6, skip, base64Value), first, Window*3/2)
	}

	for skip := range 2 {
		a.encoded(r.bits(4, skip, hexValue), first, Window*2)
	}

	if depth < maxQuotes {
		for _, quote := range []func([]byte) (string, int){escape, percent, entity, doubledQuote} {
			a.quoted(r.replace(quote), depth+1)
		}

		// A plus takes no more bytes than the space it stands for.
		if bytes.IndexByte(r.text, '+') >= 0 {
			a.one(r.replace(query), true, true, 0)
		}
	}
}

// encoded goes through what stands in a text in another encoding.
func (a *readings) encoded(r *reading, first bool, literal int32) {
	a.one(r, false, first, literal)

	for _, quote := range []func([]byte) (string, int){escape, percent, entity} {
		if plain := r.replace(quote); plain != nil {
			a.one(plain, false, first, literal)
		}
	}

	if bytes.IndexByte(r.text, '+') >= 0 {
		a.one(r.replace(query), false, true, 0)
	}
}

func (a *readings) one(r *reading, words, first bool, literal int32) {
	if a.left -= len(r.text); a.left < 0 {
		return
	}

	if first {
		literal = 0
	}

	a.each(fold(r), words, literal)
}

// fold makes one space of every stretch of white space and control characters.
func fold(r *reading) *reading {
	folded := newReading(len(r.text))

	for i := 0; i < len(r.text); {
		c, length := utf8.DecodeRune(r.text[i:])

		last := len(folded.text) - 1

		switch {
		case !isBlank(c):
			folded.text = append(folded.text, r.text[i:i+length]...)
			folded.from, folded.to = append(folded.from, r.from[i:i+length]...), append(folded.to, r.to[i:i+length]...)
		case last < 0 || folded.text[last] != ' ':
			folded.add(" ", r.from[i], r.to[i+length-1])
		}

		i += length
	}

	return folded
}

func isBlank(c rune) bool {
	if c > ' ' && c < 0x7f {
		return false
	}

	return unicode.IsSpace(c) || unicode.IsControl(c)
}
