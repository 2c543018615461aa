package values

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// MaxBytes is how many bytes all texts of the values of one release may have together, as they come and once
// their aliases are replaced by what they stand for. Helm keeps the values, with the chart, in a Secret of 1 MiB.
const MaxBytes = 4 << 20

const (
	// maxNodes is how many keys and values there may be in all values of one release. The largest charts have
	// some ten thousand.
	maxNodes = 100_000
	// maxDepth is how deep values may be nested.
	maxDepth = 100
)

// errTooLong is a target path with too many names.
var errTooLong = fmt.Errorf("targetPath has more than %d names: make it shorter", maxDepth-1)

// remaining is what the values of one release may still take.
type remaining struct {
	left foreign.Limits
	used bool // by a layer
}

func newRemaining() *remaining {
	return &remaining{left: foreign.Limits{Bytes: MaxBytes, Depth: maxDepth, Nodes: maxNodes, Expanded: MaxBytes}}
}

// admit decides whether a layer may be parsed.
func (r *remaining) admit(ctx context.Context, layer *Layer) error {
	if layer.TargetPath == "" {
		return r.together(foreign.Check(ctx, layer.Text, r.left))
	}

	// The text is one value, whatever it looks like.
	if len(layer.Text) > min(r.left.Bytes, r.left.Expanded) {
		return r.together(&foreign.LimitError{What: foreign.Bytes})
	}

	return nil
}

// together names the limit for all layers where what is left of it was exceeded.
func (r *remaining) together(err error) error {
	var exceeded *foreign.LimitError
	if !errors.As(err, &exceeded) {
		return err
	}

	limit := MaxBytes

	switch exceeded.What { //nolint:exhaustive // the others count bytes
	case foreign.Depth:
		return err
	case foreign.Nodes:
		limit = maxNodes
	}

	whole := &foreign.LimitError{What: exceeded.What, Limit: limit}
	if r.used {
		return fmt.Errorf("with the values before it, it %w", whole)
	}

	return whole
}

// take takes a layer that was parsed off what is left.
func (r *remaining) take(layer *Layer, parsed map[string]any) {
	nodes, bytes := measure(parsed)
	r.used = true

	// A limit is at least 1, and what has no room at all exceeds that.
	r.left.Nodes = max(1, r.left.Nodes-nodes)
	r.left.Expanded = max(1, r.left.Expanded-bytes)
	r.left.Bytes = max(1, r.left.Bytes-len(layer.Text))
}

// measure counts the maps, lists, keys and values of a tree, and the bytes of its texts.
func measure(value any) (nodes, bytes int) {
	nodes = 1

	add := func(key string, member any) {
		n, b := measure(member)
		nodes, bytes = nodes+n, bytes+b+len(key)
	}

	switch typed := value.(type) {
	case map[string]any:
		nodes += len(typed)

		for key, member := range typed {
			add(key, member)
		}
	case []any:
		for _, member := range typed {
			add("", member)
		}
	case string:
		bytes += len(typed)
	case json.Number:
		bytes += len(typed)
	}

	return nodes, bytes
}
