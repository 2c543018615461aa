package omnicluster

import (
	"bytes"
	"context"
	"encoding/json"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// leafLimits bound the values in which single secrets are looked for. The largest
// Secret has 1 MiB.
//
//nolint:gochecknoglobals // a constant
var leafLimits = foreign.Limits{Bytes: 1 << 20, Depth: 100, Nodes: 100_000, Expanded: 1 << 20}

// SecretTexts removes the content of Secrets from texts. Errors of Omni's own rules quote what they refuse, in whole or in
// part. From records the content. Without any, also as nil, it leaves a text as it is.
type SecretTexts struct {
	values [][]byte
}

// add records a value that was read from a Secret.
func (s *SecretTexts) add(value []byte) { s.values = append(s.values, value) }

// Clean removes the values from a text, and the leaves of values that are YAML: a leaf that is short, or written with
// quotes, is a secret of its own.
func (s *SecretTexts) Clean(ctx context.Context, text string) string {
	if s == nil || len(s.values) == 0 {
		return text
	}

	found := &redact.Secrets{}

	for _, value := range s.values {
		found.Add(string(value))

		documents, err := foreign.Documents(ctx, value, leafLimits)
		if err != nil {
			continue // it is one text then
		}

		for _, document := range documents {
			decoder := json.NewDecoder(bytes.NewReader(document))
			decoder.UseNumber()

			var tree any
			if err := decoder.Decode(&tree); err == nil {
				found.Add(redact.Leaves(tree)...)
			}
		}
	}

	return found.Remove(text)
}
