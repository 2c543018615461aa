package omnicluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// maxValueBytes bounds the texts of all valueFrom of one cluster together, in bytes. They are part of one template,
// which is parsed several times.
const maxValueBytes = 8 << 20

// valueLimits bound one text of valueFrom: a patch, which Omni's rules decode, or manifests.
//
//nolint:gochecknoglobals // a constant, but Go has none of this type
var valueLimits = foreign.Limits{Bytes: 1 << 20, Depth: 128, Nodes: 100_000, Expanded: 4 << 20}

// boundedValues refuses texts that would take much memory when they are decoded. It leaves a text that is not YAML to
// Omni's rules, unless it seems to have aliases: another parser may accept what one parser refuses.
func boundedValues(ctx context.Context, read template.ValueFunc) template.ValueFunc {
	total := 0

	return func(source v1alpha1.ValueSource) (string, error) {
		text, err := read(source)
		if err != nil {
			return "", err
		}

		if total += len(text); total > maxValueBytes {
			return "", fmt.Errorf("with the texts before it, it %w", &foreign.LimitError{What: foreign.Bytes, Limit: maxValueBytes})
		}

		err = foreign.Check(ctx, []byte(text), valueLimits)

		switch {
		case err == nil, errors.Is(err, foreign.ErrSyntax) && !mayHaveAliases([]byte(text)):
			return text, nil
		case ctx.Err() != nil:
			return "", &UnreadableValueError{ctx.Err()}
		default:
			return "", err
		}
	}
}

func mayHaveAliases(text []byte) bool {
	return bytes.ContainsRune(text, '&') && bytes.ContainsRune(text, '*')
}
