package charts

import (
	"context"
	"encoding/json"
	"errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// The bounds of what repositories and registries send; how long files may be stands beside what reads them. A list of
// empty objects takes a hundred times its length when it is decoded.
const (
	// maxDepth is how deep anything may be nested.
	maxDepth = 64
	// maxSmallNodes is for manifests, tokens and Docker configurations, which have some tens of values.
	maxSmallNodes = 10_000
	// maxTokenBytes is the longest answer of a token service.
	maxTokenBytes = 1 << 20
	// maxTags is how many tags one chart may have, on all pages together.
	maxTags = 100_000
	// maxTag is how long a tag may be, by the OCI specification.
	maxTag = 128
)

// decodeJSON reads a JSON text of at most so many values. Its errors never quote the text; one is a
// *foreign.LimitError.
func decodeJSON(ctx context.Context, text []byte, nodes int, into any) error {
	if !json.Valid(text) {
		return foreign.ErrSyntax
	}

	return foreign.Unmarshal(ctx, text, foreign.Limits{Bytes: len(text), Depth: maxDepth, Nodes: nodes, Expanded: len(text)}, into)
}

// unreadable explains why a text could not be read: it is too large, or something else than what was asked for.
func unreadable(err error, at, what string) error {
	var exceeded *foreign.LimitError
	if errors.As(err, &exceeded) {
		return fail(TooLarge, "%s: the %s %s", at, what, exceeded)
	}

	return fail(Invalid, "%s answers with something that is no %s", at, what)
}
