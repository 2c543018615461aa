// Package values merges the layers of a release's values, within bounds. It gives the result a digest, and removes what
// came from Secrets from messages. pkg/controllers/omnihelmrelease makes the layers; pkg/helm renders charts with the
// result.
package values

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
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

// Layer is one source of values.
type Layer struct {
	// From names the source in messages, such as: Secret "db", key "values.yaml".
	From string
	// Text is YAML or JSON. With a TargetPath it is any text.
	Text []byte
	// TargetPath places the text as one string at this dotted path; a dot inside a name is written \. .
	// Empty merges the text as an object.
	TargetPath string
	// Secret keeps what the layer holds out of all messages.
	Secret bool
}

// parse reads a layer as an object, if there is room for it.
func (l *Layer) parse(ctx context.Context, left *remaining) (map[string]any, error) {
	// Helm's records are JSON: other bytes would be replaced there, and all of
	// them would have one digest.
	if !utf8.Valid(l.Text) {
		return nil, errors.New("is not UTF-8 text: encode binary data, for example as base64")
	}

	if err := left.admit(ctx, l); err != nil {
		return nil, err
	}

	parsed, err := l.tree()
	if err != nil {
		return nil, err
	}

	left.take(l, parsed)

	return parsed, nil
}

// tree reads a layer as an object, whatever its size.
func (l *Layer) tree() (map[string]any, error) {
	if l.TargetPath != "" {
		path, err := splitPath(l.TargetPath)
		if err != nil {
			return nil, err
		}

		if len(path) >= maxDepth {
			return nil, errTooLong
		}

		var value any = string(l.Text)
		for i := len(path) - 1; i >= 0; i-- {
			value = map[string]any{path[i]: value}
		}

		return value.(map[string]any), nil //nolint:forcetypeassert // a path has one name at least
	}

	if json.Valid(l.Text) {
		return parseJSON(l.Text)
	}

	tree := map[string]any{}

	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(append(l.Text, '\n')))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return tree, nil
		}

		if err != nil {
			return nil, errors.New("is neither YAML nor JSON")
		}

		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, errors.New("is neither YAML nor JSON")
		}

		parsed, err := parseJSON(text)
		if err != nil {
			return nil, err
		}

		tree = mergeLayer(tree, parsed)
	}
}

func parseJSON(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errors.New("is neither YAML nor JSON")
	}

	if value == nil {
		return map[string]any{}, nil
	}

	tree, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("must be an object of names and values, not a list or a single value; to place it as one value set targetPath")
	}

	converted, _ := render.RestoreNumbers(tree).(map[string]any)

	return converted, nil
}

// splitPath splits a dotted path.
func splitPath(path string) ([]string, error) {
	var (
		names   []string
		current strings.Builder
	)

	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path):
			i++
			current.WriteByte(path[i])
		case path[i] == '.':
			names = append(names, current.String())
			current.Reset()
		default:
			current.WriteByte(path[i])
		}
	}

	names = append(names, current.String())

	for _, name := range names {
		if name == "" {
			return nil, fmt.Errorf("targetPath %q has an empty name: write it as a.b.c", path)
		}

		if strings.ContainsAny(name, "[]") {
			return nil, fmt.Errorf("targetPath %q leads into a list, which is not possible: place the whole list with values", path)
		}
	}

	return names, nil
}

// WithOlder returns values that also keep older ones out of texts, as far as they are not among
// the current ones that came from no Secret, and the size of what they keep beside what v keeps. Config is what Helm's record
// of an older revision has.
func (v Values) WithOlder(config map[string]any) (Values, foreign.Size) {
	var added foreign.Size

	known := map[string]bool{} // which of them came from a Secret

	for _, text := range redact.Leaves(v.tree) {
		known[text] = false
	}

	for _, text := range v.secrets {
		known[text] = true
	}

	var older []string

	for _, text := range redact.Leaves(config) {
		if _, found := known[text]; !found {
			older, known[text] = append(older, text), true
			added = added.And(sizeOf(text))
		}
	}

	v.secrets, v.hidden = slices.Concat(v.secrets, older), v.hidden.With(redact.Of(older...))

	return v, added
}

// sizeOf is what keeping a text out of others takes. One with escapes is kept as it is, and without them.
func sizeOf(text string) foreign.Size {
	size := foreign.Size{Nodes: 1, Bytes: len(text)}
	if strings.Contains(text, `\`) {
		size = size.And(size)
	}

	return size
}

// Remove takes what came from a Secret out of a text, and changes nothing else.
func (v Values) Remove(text string) string { return v.hidden.Remove(text) }

// Redact makes a text of Helm or of a cluster fit for conditions and logs: one
// line, and nothing in it that came from a Secret.
func (v Values) Redact(text string) string {
	return v.hidden.Line(text)
}

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
