// Package parse reads what chart repositories send and people write: indexes, provenance files and keyrings.
//
// Only the worker processes of package render call it: what a text does to a parser, it does to a process that is
// bounded and has nothing.
package parse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

const (
	// maxIndexNodes is how many values an index may have. The largest have a million.
	maxIndexNodes = 4_000_000
	// maxWholeIndex is the largest index that is not in the form in which Helm writes one, in bytes: it is parsed at once.
	maxWholeIndex = 2 << 20
	// maxPiece is the largest piece of another, in bytes: one version of a chart.
	maxPiece = 1 << 20
	// maxPieceNodes is how many values such a piece may have.
	maxPieceNodes = 100_000
	// maxDepth is how deep anything may be nested.
	maxDepth = 64
)

// errOtherForm is what an index gets that is too large to be parsed at once.
var errOtherForm = fmt.Errorf("is not written as helm repo index does, and has more than %d bytes: write it so", maxWholeIndex)

// errKept is what an index gets of which too much would be kept.
var errKept = fmt.Errorf("lists more versions of charts than fit into %d MiB: remove old ones", render.MaxIndex>>20)

// versions collects what is kept of an index.
type versions struct {
	*render.Index
	entries bool // the index has some, or none at all
}

// Index reads a repository's index; everything but the versions is dropped. Errors are *render.Failure: of
// render.StageSize if the index is too large, or in a form that takes too much; else it is none.
func Index(text []byte) (*render.Index, error) {
	read, err := readIndex(context.Background(), text)

	var exceeded *foreign.LimitError

	switch {
	case errors.As(err, &exceeded), errors.Is(err, errOtherForm), errors.Is(err, errKept):
		return nil, &render.Failure{Stage: render.StageSize, Text: err.Error()}
	case err != nil || !read.entries:
		return nil, &render.Failure{Stage: render.StageLoad, Text: "no chart index"}
	}

	return read.Index, nil
}

// readIndex reads an index as JSON, as YAML in pieces, or as any YAML if it is small. Errors are *foreign.LimitError,
// foreign.ErrSyntax, errOtherForm, errKept, and that of ctx.
func readIndex(ctx context.Context, text []byte) (*versions, error) {
	if json.Valid(text) {
		limits := foreign.Limits{Bytes: len(text), Depth: maxDepth, Nodes: maxIndexNodes, Expanded: len(text)}
		if err := foreign.Check(ctx, text, limits); err != nil {
			return nil, err
		}

		return fromDocument(text)
	}

	read := newVersions()

	for piece := range pieces(text) {
		converted, err := foreign.ToJSON(ctx, piece, foreign.Limits{Bytes: maxPiece, Depth: maxDepth, Nodes: maxPieceNodes, Expanded: maxPiece})
		if errors.Is(err, foreign.ErrSyntax) {
			return wholeIndex(ctx, text)
		}

		var exceeded *foreign.LimitError
		if errors.As(err, &exceeded) {
			return nil, fmt.Errorf("holds a version of a chart that %w", exceeded)
		}

		if err == nil {
			read.entries = true
			err = read.fromCharts(json.NewDecoder(bytes.NewReader(converted)))
		}

		if err != nil {
			return nil, err
		}
	}

	if !read.entries {
		return wholeIndex(ctx, text)
	}

	return read, nil
}

// wholeIndex parses YAML at once.
func wholeIndex(ctx context.Context, text []byte) (*versions, error) {
	if len(text) > maxWholeIndex {
		return nil, errOtherForm
	}

	converted, err := foreign.ToJSON(ctx, text, foreign.Limits{Bytes: maxWholeIndex, Depth: maxDepth, Nodes: maxPieceNodes, Expanded: maxWholeIndex})
	if err != nil {
		return nil, err
	}

	return fromDocument(converted)
}

// fromDocument reads a whole index as JSON, token by token: what is not kept is never held.
func fromDocument(text []byte) (*versions, error) {
	read := newVersions()
	decoder := json.NewDecoder(bytes.NewReader(text))

	err := eachMember(decoder, func(key string) error {
		if key != "entries" {
			return skip(decoder)
		}

		read.entries = true

		return read.fromCharts(decoder)
	})

	return read, err
}

func newVersions() *versions { return &versions{Index: render.NewIndex()} }

// fromCharts reads a mapping of charts to their versions; null is an empty one.
func (v *versions) fromCharts(decoder *json.Decoder) error {
	return eachMember(decoder, func(chart string) error {
		return eachElement(decoder, func() error {
			var entry indexEntry
			if err := decoder.Decode(&entry); err != nil {
				return foreign.ErrSyntax
			}

			return v.add(chart, entry)
		})
	})
}

// add keeps a version of a chart. One without a number can never be chosen.
func (v *versions) add(chart string, entry indexEntry) error {
	if entry.Version == "" {
		return nil
	}

	if !v.Add(chart, render.Entry{Version: string(entry.Version), URL: string(entry.URL), Digest: string(entry.Digest)}) {
		return errKept
	}

	return nil
}

// indexEntry is one version of one chart. The JSON names are Helm's.
type indexEntry struct {
	Version looseText `json:"version"`
	URL     firstText `json:"urls"` // the first, which alone is used
	Digest  looseText `json:"digest"`
}

// looseText is a text, or a number or boolean that somebody did not quote.
type looseText string

// UnmarshalJSON implements json.Unmarshaler.
func (l *looseText) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, (*string)(l))
	case '{', '[':
		return foreign.ErrSyntax
	case 'n': // null
		return nil
	default:
		*l = looseText(raw)

		return nil
	}
}

// firstText is the first of a list of texts.
type firstText string

// UnmarshalJSON implements json.Unmarshaler.
func (f *firstText) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))

	switch open, err := decoder.Token(); {
	case err != nil:
		return foreign.ErrSyntax
	case open == nil: // null
		return nil
	case open != json.Delim('['):
		return foreign.ErrSyntax
	case !decoder.More():
		return nil
	}

	var first looseText
	if err := decoder.Decode(&first); err != nil {
		return foreign.ErrSyntax
	}

	*f = firstText(first)

	return nil
}

// eachMember reads an object and calls read for each key; read reads the value. null is an empty object.
func eachMember(decoder *json.Decoder, read func(key string) error) error {
	return each(decoder, '{', func() error {
		key, err := decoder.Token()
		if err != nil {
			return foreign.ErrSyntax
		}

		name, ok := key.(string)
		if !ok {
			return foreign.ErrSyntax
		}

		return read(name)
	})
}

// eachElement reads a list and calls read for each element, which reads it. null is an empty list.
func eachElement(decoder *json.Decoder, read func() error) error { return each(decoder, '[', read) }

func each(decoder *json.Decoder, bracket json.Delim, read func() error) error {
	open, err := decoder.Token()
	if err != nil {
		return foreign.ErrSyntax
	}

	if open == nil { // null
		return nil
	}

	if open != bracket {
		return foreign.ErrSyntax
	}

	for decoder.More() {
		if err := read(); err != nil {
			return err
		}
	}

	if _, err := decoder.Token(); err != nil { // the closing bracket
		return foreign.ErrSyntax
	}

	return nil
}

// skip reads a value and forgets it.
func skip(decoder *json.Decoder) error {
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return foreign.ErrSyntax
		}

		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}

		if depth == 0 {
			return nil
		}
	}
}

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
