package parse

import (
	"bytes"
	"iter"
)

// pieceBytes is how long a piece of an index is at least, in bytes, unless it is the last.
const pieceBytes = 64 << 10

// maxHeader is the longest text before the versions of a chart that is repeated in each of its pieces, in bytes.
const maxHeader = 4 << 10

// pieces cuts the YAML text of an index, in the form in which Helm and repositories write one, into texts that are
// small mappings of charts to some of their versions. An index of 20 MB has a million values, and parsed at once they
// take ten times its size.
//
//	entries:
//	  chart:
//	  - version: 1.0.0
//
// It cuts where a line begins a chart or a version, and only there. A text in another form can have such a line inside
// of a value; then the piece before it is no YAML. Pieces are valid until the next one.
func pieces(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := &cutter{yield: yield, chart: -1, dash: -1}
		inside := false

		for line := range bytes.Lines(text) {
			content := bytes.TrimRight(line, " \t\r\n")
			trimmed := bytes.TrimLeft(content, " ")
			indent := len(content) - len(trimmed)

			switch {
			case len(trimmed) == 0 || trimmed[0] == '#':
				c.add(line) // it can be part of a value
			case indent == 0 && inside && !isItem(trimmed):
				c.flush()

				return
			case !inside:
				inside = indent == 0 && string(content) == "entries:"
			default:
				c.line(line, trimmed, indent)
			}

			if c.ended {
				return
			}
		}

		c.flush()
	}
}

// isItem reports whether a line begins an element of a list.
func isItem(trimmed []byte) bool {
	return len(trimmed) == 1 && trimmed[0] == '-' || bytes.HasPrefix(trimmed, []byte("- "))
}

// cutter collects the lines of a piece.
type cutter struct {
	yield func([]byte) bool
	ended bool // nobody wants more

	chart  int    // the indentation of charts; -1 before the first
	dash   int    // that of the versions of the chart; -1 before the first
	header []byte // the lines of the chart before its versions
	piece  []byte
}

// line takes a line that is neither empty nor a comment.
func (c *cutter) line(line, trimmed []byte, indent int) {
	if c.chart < 0 {
		c.chart = indent
	}

	full := len(c.piece) >= len(c.header)+pieceBytes

	switch {
	case indent <= c.chart && !isItem(trimmed):
		if full {
			c.flush()
		}

		c.dash, c.header = -1, c.header[:0]
	case isItem(trimmed) && c.dash < 0:
		c.dash = indent
	case isItem(trimmed) && indent == c.dash && full && len(c.header) <= maxHeader:
		c.flush()
		c.piece = append(c.piece, c.header...)
	}

	c.add(line)
}

func (c *cutter) add(line []byte) {
	if c.chart < 0 {
		return
	}

	c.piece = append(c.piece, line...)

	if c.dash < 0 {
		c.header = append(c.header, line...)
	}
}

func (c *cutter) flush() {
	if len(c.piece) > 0 && !c.ended {
		c.ended = !c.yield(c.piece)
	}

	c.piece = c.piece[:0]
}
