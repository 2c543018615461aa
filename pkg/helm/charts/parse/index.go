package parse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
