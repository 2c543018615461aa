// Package foreign reads text that is not ours: request bodies, values, manifests, patches and kubeconfigs that
// users keep in Secrets, files of charts, answers of other servers.
//
// A bound on the length of such a text says little about the memory that it takes once it is read: 20,000 YAML
// aliases of one value of 60 KB are a text of 121 KB and 1.2 GB of values, and a list of empty objects takes a
// hundred times its length. So Limits count what a text becomes, and everything here decides before anything is
// expanded. What is being read at the same time shares one budget of the process.
//
// The limits are the callers': each knows what is real in its field. The texts of errors never quote the input.
package foreign

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/sync/semaphore"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Check reports whether a text, with all its YAML documents together, stays within the limits. It is for libraries
// that read the text themselves. Errors are ErrSyntax, *LimitError, ErrAlias, one that names an alias that
// contains itself, and that of ctx if it ends while others are being read.
func Check(ctx context.Context, text []byte, limits Limits) error {
	_, err := Measure(ctx, text, limits)

	return err
}

// Measure is Check, and says what the text becomes: of all its documents together.
func Measure(ctx context.Context, text []byte, limits Limits) (Size, error) {
	if len(text) > limits.Bytes {
		return Size{}, &LimitError{Bytes, limits.Bytes}
	}

	if json.Valid(text) {
		found := sizeOfJSON(text)

		return found, limits.allow(found)
	}

	if err := mayParse(text, limits); err != nil {
		return Size{}, err
	}

	release, err := reserve(ctx, text)
	if err != nil {
		return Size{}, err
	}
	defer release()

	return sizeOfYAML(text, limits)
}

// sizeOfYAML measures all documents of a text together.
func sizeOfYAML(text []byte, limits Limits) (Size, error) {
	total := Size{}

	err := eachDocument(text, func(document *yamlv3.Node) error {
		one, err := newMeasure(limits).of(document)
		if err != nil {
			return err
		}

		total = total.And(one)

		return limits.allow(total)
	})

	return total, err
}

// eachDocument parses a text, document by document. A parsed document holds each alias as a reference.
func eachDocument(text []byte, visit func(*yamlv3.Node) error) error {
	for decoder := yamlv3.NewDecoder(bytes.NewReader(text)); ; {
		var document yamlv3.Node

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return ErrSyntax // the parser's own error quotes the text
		}

		if err := visit(&document); err != nil {
			return err
		}
	}
}

// ToJSON returns the first YAML document of a text, or a JSON text as it is, as JSON. Errors are those of Check.
func ToJSON(ctx context.Context, text []byte, limits Limits) ([]byte, error) {
	if len(text) > limits.Bytes {
		return nil, &LimitError{Bytes, limits.Bytes}
	}

	if json.Valid(text) {
		return text, limits.allow(sizeOfJSON(text))
	}

	converted, _, err := checkAndConvert(ctx, text, limits)

	return converted, err
}

// Documents returns all YAML documents of a text as JSON, the empty ones as null; a JSON text is one document. The
// limits are for all of them together. Errors are those of Check.
func Documents(ctx context.Context, text []byte, limits Limits) ([][]byte, error) {
	if len(text) > limits.Bytes {
		return nil, &LimitError{Bytes, limits.Bytes}
	}

	if json.Valid(text) {
		return [][]byte{text}, limits.allow(sizeOfJSON(text))
	}

	var (
		documents [][]byte
		total     Size
	)

	err := split(text, func(document []byte) error {
		converted, one, err := checkAndConvert(ctx, document, limits)
		if err != nil {
			return err
		}

		documents, total = append(documents, converted), total.And(one)

		return limits.allow(total)
	})
	if err != nil {
		return nil, err
	}

	return documents, nil
}

// split splits a text at the lines between its YAML documents.
func split(text []byte, visit func(document []byte) error) error {
	// The splitter needs a line break at the end of the last line.
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(io.MultiReader(bytes.NewReader(text), strings.NewReader("\n")))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return ErrSyntax
		}

		if err := visit(document); err != nil {
			return err
		}
	}
}

// checkAndConvert converts one document and returns its size.
func checkAndConvert(ctx context.Context, document []byte, limits Limits) ([]byte, Size, error) {
	if err := mayParse(document, limits); err != nil {
		return nil, Size{}, err
	}

	release, err := reserve(ctx, document)
	if err != nil {
		return nil, Size{}, err
	}
	defer release()

	found, err := sizeOfYAML(document, limits)
	if err != nil {
		return nil, Size{}, err
	}

	converted, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, Size{}, ErrSyntax
	}

	return converted, found, nil
}

// Unmarshal reads the first YAML document of a text, or a JSON text, into a value as encoding/json does. Errors are
// those of Check, and ErrSyntax if the text does not fit the value.
func Unmarshal(ctx context.Context, text []byte, limits Limits, into any) error {
	converted, err := ToJSON(ctx, text, limits)
	if err != nil {
		return err
	}

	if err := json.Unmarshal(converted, into); err != nil {
		return fmt.Errorf("%w of the expected form", ErrSyntax)
	}

	return nil
}

// Gunzip returns what a gzip text holds, of at most so many bytes. Errors are ErrSyntax, if it is no gzip text, and
// *LimitError.
func Gunzip(data []byte, limit int) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: it is not compressed with gzip", ErrSyntax)
	}

	inflated, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("%w: its compression is damaged", ErrSyntax)
	}

	if len(inflated) > limit {
		return nil, &LimitError{Inflated, limit}
	}

	return inflated, nil
}

// The memory that reading YAML takes. A parsed value takes some 200 bytes beside its text, and its text is there
// twice. (Measured: a text of 1 MiB that consists of `a,` takes 100 MiB.)
const (
	bytesPerNode = 200
	copies       = 2
)

// budgetBytes is what the texts that are being parsed at the same time may take together, in bytes. One text that
// takes more has the budget for itself.
const budgetBytes = 96 << 20

// parsing is the budget of the process: the memory is the process's, too.
//
//nolint:gochecknoglobals // see above
var parsing = semaphore.NewWeighted(budgetBytes)

// maxParsed is how many values a YAML text may have before its aliases are expanded, whatever its limits are: only the
// parser can count them, and that takes 200 MiB for this many.
const maxParsed = 1_000_000

// mayParse refuses a text that could have many more values than it may, before it is parsed.
func mayParse(text []byte, limits Limits) error {
	// Text inside of a value has punctuation, too: dashboards and scripts have some for every ten bytes.
	const punctuation = 4

	if mostNodes(text) > min(punctuation*limits.Nodes, maxParsed) {
		return &LimitError{Nodes, limits.Nodes}
	}

	return nil
}

// reserve waits until a YAML text may be parsed, and returns what ends that. Its error is that of ctx.
func reserve(ctx context.Context, text []byte) (func(), error) {
	cost := min(int64(len(text))*copies+int64(mostNodes(text))*bytesPerNode, budgetBytes)

	if err := parsing.Acquire(ctx, cost); err != nil {
		return nil, fmt.Errorf("wait until the text may be read: %w", err)
	}

	return func() { parsing.Release(cost) }, nil
}

// mostNodes is how many values a YAML text can have at most, without its aliases: one begins after each of these
// characters, whatever the text around them is.
func mostNodes(text []byte) int {
	most := 1
	for _, indicator := range []byte(",:-?[{\n\r") {
		most += bytes.Count(text, []byte{indicator})
	}

	return min(most, len(text)+1)
}
