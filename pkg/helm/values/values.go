// Package values merges the layers of a release's values, within bounds. It gives the result a digest, and removes what
// came from Secrets from messages. pkg/controllers/omnihelmrelease makes the layers; pkg/helm renders charts with the
// result.
package values

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// Values are merged values. They do not change.
type Values struct {
	tree    map[string]any
	secrets []string        // texts that came from Secrets
	hidden  *redact.Secrets // the same
	digest  string
}

// Merge merges layers in their order: objects are merged, everything else is
// replaced by the later layer. Integers stay integers; in JSON, such as in
// spec.chart.values, one that fits no 64 bits stays as it is written. All other
// numbers that float64 can hold become that, as in Helm, because templates compute
// with them: 1.10 is 1.1. All layers together are bounded, with YAML aliases counted
// as what they stand for. Errors name the layer and nothing of it; one that ends
// with ctx is that of ctx.
func Merge(ctx context.Context, layers []Layer) (Values, error) {
	tree := map[string]any{}
	left := newRemaining()

	var secrets []string

	for i := range layers {
		layer := &layers[i]

		parsed, err := layer.parse(ctx, left)
		if err != nil {
			return Values{}, fmt.Errorf("%s: %w", layer.From, err)
		}

		if layer.Secret {
			secrets = append(secrets, redact.Leaves(parsed)...)
		}

		tree = mergeLayer(tree, parsed)
	}

	text, err := json.Marshal(tree)
	if err != nil {
		return Values{}, fmt.Errorf("write the values: %w", err)
	}

	sum := sha256.Sum256(text)

	return Values{tree: tree, secrets: secrets, hidden: redact.Of(secrets...), digest: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// Digest is sha256:<hex> of the values in a canonical form: how a source was
// formatted does not count.
func (v Values) Digest() string { return v.digest }

// Tree returns a copy for Helm, which changes what it is given.
func (v Values) Tree() map[string]any {
	if v.tree == nil {
		return map[string]any{}
	}

	return runtime.DeepCopyJSON(v.tree)
}

// Encode writes the values for a worker, which restores them with the types of their numbers (see render.EncodeValues).
// The error is that of a value that JSON does not have; merged values hold none.
func (v Values) Encode() ([]byte, error) { return render.EncodeValues(v.tree) }

// mergeLayer lays one object over another.
func mergeLayer(under, over map[string]any) map[string]any {
	for key, value := range over {
		below, isObject := under[key].(map[string]any)

		above, overObject := value.(map[string]any)
		if !isObject || !overObject {
			under[key] = value

			continue
		}

		under[key] = mergeLayer(below, above)
	}

	return under
}
