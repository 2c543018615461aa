package redact

import (
	"encoding/base64"
	"math/bits"
	"strings"
	"unicode/utf8"
)

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
