package foreign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// ErrUndecided says that readers of YAML can disagree about what a text holds.
var ErrUndecided = errors.New("can be read in more than one way")

// Sum identifies what a text holds.
type Sum [sha256.Size]byte

// ContentSum identifies what the YAML documents of a text hold: texts with the same sum differ in their format at most,
// which is their indentation, quotes, comments, and the order of keys. Documents with comments only do not count.
// Numbers and truth values are compared as they are written, so 1 and 1.0 differ. Errors are those of Check, and
// ErrUndecided, with which a text counts as different from every other one.
func ContentSum(ctx context.Context, text []byte, limits Limits) (Sum, error) {
	if len(text) > limits.Bytes {
		return Sum{}, &LimitError{Bytes, limits.Bytes}
	}

	var (
		sums  []Sum
		total Size
	)

	err := split(text, func(part []byte) error {
		found, one, err := sumOfPart(ctx, withoutSeparator(part), limits)
		if err != nil {
			return err
		}

		sums, total = append(sums, found...), total.And(one)

		return limits.allow(total)
	})
	if err != nil {
		return Sum{}, err
	}

	return sumOf("documents", sums...), nil
}

// withoutSeparator takes the line off that begins a part, which the splitter leaves before the first one: with it, comments alone
// would be a document of null.
func withoutSeparator(part []byte) []byte {
	line, rest, _ := bytes.Cut(part, []byte("\n"))
	if string(bytes.TrimRight(line, " \t\r")) == "---" {
		return rest
	}

	return part
}

// sumOfPart returns the sums of the document in a part of a text, if there is one: as YAML 1.2 with every digit, and as
// YAML 1.1, which Kubernetes reads, and which takes other texts for truth values. What is one document to some readers and
// two to others is undecided.
func sumOfPart(ctx context.Context, part []byte, limits Limits) (sums []Sum, total Size, err error) {
	if err := mayParse(part, limits); err != nil {
		return nil, Size{}, err
	}

	release, err := reserve(ctx, part)
	if err != nil {
		return nil, Size{}, err
	}
	defer release()

	err = eachDocument(part, func(document *yamlv3.Node) error {
		one, err := newMeasure(limits).of(document)
		if err != nil {
			return err
		}

		total = total.And(one)
		if err := limits.allow(total); err != nil {
			return err
		}

		sum, err := sumOfNode(document)
		sums = append(sums, sum)

		return err
	})

	if err != nil || len(sums) == 0 {
		return nil, total, err
	}

	if len(sums) > 1 {
		return nil, Size{}, ErrUndecided
	}

	converted, err := yaml.YAMLToJSON(part)
	if err != nil {
		return nil, Size{}, ErrSyntax
	}

	return append(sums, sumOf(string(converted))), total, nil
}

// sumOfNode returns the sum of a value, which has no alias.
func sumOfNode(node *yamlv3.Node) (Sum, error) {
	if node.Style&yamlv3.TaggedStyle != 0 {
		return Sum{}, ErrUndecided
	}

	switch node.Kind {
	case yamlv3.DocumentNode, yamlv3.SequenceNode:
		return sumOfList(node)
	case yamlv3.MappingNode:
		return sumOfMap(node)
	case yamlv3.ScalarNode:
		if node.ShortTag() == nullTag {
			return sumOf(nullTag), nil
		}

		return sumOf(node.ShortTag() + " " + node.Value), nil
	case yamlv3.AliasNode:
		fallthrough
	default:
		return Sum{}, ErrUndecided
	}
}

func sumOfList(node *yamlv3.Node) (Sum, error) {
	sums := make([]Sum, 0, len(node.Content))

	for _, child := range node.Content {
		sum, err := sumOfNode(child)
		if err != nil {
			return Sum{}, err
		}

		sums = append(sums, sum)
	}

	return sumOf("list", sums...), nil
}

// sumOfMap accepts strings as keys only, each of them once.
func sumOfMap(node *yamlv3.Node) (Sum, error) {
	entries := make([]Sum, 0, len(node.Content)/2)
	keys := make(map[string]bool, len(node.Content)/2)

	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yamlv3.ScalarNode || key.ShortTag() != stringTag || key.Value == mergeKey || keys[key.Value] {
			return Sum{}, ErrUndecided
		}

		keys[key.Value] = true

		sum, err := sumOfList(&yamlv3.Node{Content: node.Content[i : i+2]})
		if err != nil {
			return Sum{}, err
		}

		entries = append(entries, sum)
	}

	slices.SortFunc(entries, func(a, b Sum) int { return slices.Compare(a[:], b[:]) })

	return sumOf("map", entries...), nil
}

const (
	stringTag = "!!str"
	nullTag   = "!!null"
	mergeKey  = "<<"
)

// sumOf returns the sum of a value and of what is in it.
func sumOf(value string, parts ...Sum) Sum {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s", len(value), value)

	for _, part := range parts {
		hash.Write(part[:])
	}

	return Sum(hash.Sum(nil))
}
