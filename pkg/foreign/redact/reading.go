package redact

import (
	"bytes"
	"encoding/base64"
	"math/bits"
	"strings"
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

// pieces are all pieces of one text in which a value could show, in all readings.
// A piece is one number: its bytes, and in the first byte, where no text has a
// control character, what kind it is if it has fewer than Window bytes.
type pieces struct {
	filter []uint64 // a bit for each piece; most of what a value holds ends here
	heads  map[uint64]int32
	list   []piece
	cut    bool // the text has words that were cut short
	hiding bool // the text is escaped too often to be understood
}

// piece is a place in the text, and the next one with the same bytes, or -1.
type piece struct{ from, to, next int32 }

// The kinds of pieces of fewer than Window bytes, to which the length is added.
const (
	wholeWord = 0x00 // between the boundaries of words
	cutWord   = 0x10 // from such a boundary to "..."
)

// newPieces collects the pieces of a text.
func newPieces(text string) *pieces {
	p := &pieces{heads: make(map[uint64]int32, 8*len(text))}

	p.hiding = !readingsOf(text, func(r *reading, words bool, literal int32) {
		var key uint64

		for i, c := range r.text {
			if key = key<<8 | uint64(c); i < Window-1 {
				continue
			}

			if from, to := r.from[i-Window+1], r.to[i]; to-from > literal {
				p.add(key, from, to)
			}
		}

		if words {
			p.addWords(r)
		}
	})

	p.filter = make([]uint64, max(len(p.heads)/4, 1)) // 16 bits for each
	for key := range p.heads {
		word, bit := p.place(key)
		p.filter[word] |= bit
	}

	return p
}

func (p *pieces) add(key uint64, from, to int32) {
	next, known := p.heads[key]
	if !known {
		next = -1
	}

	p.heads[key] = int32(len(p.list)) //nolint:gosec // a segment is short
	p.list = append(p.list, piece{from: from, to: to, next: next})
}

// addWords adds the pieces in which values that are shorter than Window show.
func (p *pieces) addWords(r *reading) {
	for i := range r.text {
		if !isBoundary(r.text, i) {
			continue
		}

		for length := Shortest; length < Window && i+length <= len(r.text); length++ {
			word, rest := r.text[i:i+length], r.text[i+length:]

			if isBoundary(r.text, i+length) {
				p.add(short(wholeWord, word), r.from[i], r.to[i+length-1])
			}

			if isCut(rest) {
				p.cut = true
				p.add(short(cutWord, word), r.from[i], r.to[i+length-1])
			}
		}
	}
}

// short is the number of a piece of fewer than Window bytes.
func short(kind uint64, word []byte) uint64 {
	key := kind + uint64(len(word))
	for i := range Window - 1 {
		key <<= 8
		if i < len(word) {
			key |= uint64(word[i])
		}
	}

	return key
}

// isBoundary reports whether a word begins or ends before a byte.
func isBoundary(text []byte, i int) bool {
	return i == 0 || i == len(text) || !isWord(text[i-1]) || !isWord(text[i])
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= utf8.RuneSelf
}

// isCut reports whether a text begins with the mark of something that was cut short.
func isCut(rest []byte) bool {
	return strings.HasPrefix(string(rest[:min(len(rest), 3)]), "...") || strings.HasPrefix(string(rest[:min(len(rest), 3)]), "…")
}

// place is the bit of a piece in the filter.
func (p *pieces) place(key uint64) (word int, bit uint64) {
	const spread = 0x9e3779b97f4a7c15

	hash := key * spread
	high, _ := bits.Mul64(hash, uint64(len(p.filter)))

	return int(high), 1 << (hash & 63) //nolint:gosec // it is less than the length
}

// found covers the places of a piece, if the text has it.
func (p *pieces) found(key uint64, covered []bool) {
	at, known := p.heads[key]
	if !known {
		return
	}

	for ; at >= 0; at = p.list[at].next {
		for i := p.list[at].from; i < p.list[at].to; i++ {
			covered[i] = true
		}
	}

	delete(p.heads, key) // it is covered now
}

// scan covers what a text shows of a value.
func (p *pieces) scan(value string, covered []bool) {
	p.windows(value, covered)

	trimmed := strings.TrimFunc(value, isBlank)
	if len(trimmed) < Window {
		p.short(value, covered)
		p.short(trimmed, covered)
	} else if strings.ContainsAny(trimmed, "\r\n") {
		for line := range strings.Lines(trimmed) {
			p.short(strings.TrimFunc(line, isBlank), covered)
		}
	}

	if p.cut {
		for length := Shortest; length < Window && length <= len(trimmed); length++ {
			p.found(short(cutWord, []byte(trimmed[:length])), covered)
		}
	}
}

// windows covers the pieces of Window bytes. This is where the time goes: what the
// text does not have ends at the filter.
func (p *pieces) windows(value string, covered []bool) {
	var key uint64

	for i, count := 0, 1; i < len(value); count++ {
		c, length := value[i], 1

		if c <= ' ' || c >= 0x7f {
			if blank := blanks(value[i:]); blank > 0 {
				c, length = ' ', blank
			}
		}

		i += length
		key = key<<8 | uint64(c)

		if word, bit := p.place(key); p.filter[word]&bit != 0 && count >= Window {
			p.found(key, covered)
		}
	}
}

// blanks is how many bytes of white space and control characters a text begins with.
func blanks(text string) int {
	for i, c := range text {
		if !isBlank(c) {
			return i
		}
	}

	return len(text)
}

// short covers a value that is shorter than Window, and its base64.
func (p *pieces) short(value string, covered []bool) {
	if len(value) < Shortest || len(value) >= Window {
		return
	}

	p.found(short(wholeWord, []byte(value)), covered)

	text := base64.RawStdEncoding.AppendEncode(nil, []byte(value))
	if len(text) < Window {
		p.found(short(wholeWord, text), covered)
	}

	// With its padding it has as many bytes as a window, or more.
	p.windows(base64.StdEncoding.EncodeToString([]byte(value)), covered)
}
