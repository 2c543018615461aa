package values

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

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
