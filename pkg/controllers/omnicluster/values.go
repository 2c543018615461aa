package omnicluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// MissingValueError is the error for a valueFrom that refers to something that does not exist yet: an object, or a key in it.
// The renderer adds the object, the field and the reference, so this error has neither name nor key.
type MissingValueError struct{ cause *sources.MissingError }

// Error implements error.
func (e *MissingValueError) Error() string {
	if e.cause.NoKey {
		return "the " + e.cause.Kind + " has no such key"
	}

	return "the " + e.cause.Kind + " does not exist"
}

// UnreadableValueError is the error for a valueFrom that the API server cannot return now.
type UnreadableValueError struct{ cause error }

// Error implements error.
func (e *UnreadableValueError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *UnreadableValueError) Unwrap() error { return e.cause }

// valuesFrom returns a function that reads the texts of valueFrom in one namespace, each object once, and records in
// confidential what came from a Secret. It is for one template: a text has at most 1 MiB, and all together 8 MiB.
//
// The function returns a MissingError, an UnreadableError, a refusal to read a Secret (sources.Refused), an error of
// pkg/foreign for a text beyond the bounds, or an error for a source that names neither a ConfigMap nor a Secret.
func valuesFrom(ctx context.Context, live client.Reader, namespace string, confidential *SecretTexts) template.ValueFunc {
	return boundedValues(ctx, unboundedValues(ctx, live, namespace, confidential))
}

// unboundedValues is From without the bounds.
func unboundedValues(ctx context.Context, live client.Reader, namespace string, confidential *SecretTexts) template.ValueFunc {
	secrets, configMaps := map[string]*corev1.Secret{}, map[string]*corev1.ConfigMap{}

	return func(source v1alpha1.ValueSource) (string, error) {
		switch {
		case source.SecretKeyRef != nil:
			ref := sources.Reference{Namespace: namespace, Name: source.SecretKeyRef.Name, Key: source.SecretKeyRef.Key}

			value, err := readOnce(ctx, live, secrets, ref, sources.Secret, sources.ValueOf)
			if err != nil {
				return "", err
			}

			confidential.add(value)

			return string(value), nil
		case source.ConfigMapKeyRef != nil:
			ref := sources.Reference{Namespace: namespace, Name: source.ConfigMapKeyRef.Name, Key: source.ConfigMapKeyRef.Key}
			value, err := readOnce(ctx, live, configMaps, ref, sources.ConfigMap, sources.ValueOfConfigMap)

			return string(value), err
		}

		return "", errors.New("valueFrom names neither a ConfigMap nor a Secret")
	}
}

// readOnce returns a value of an object, which it reads unless an earlier call has.
func readOnce[O client.Object](ctx context.Context, live client.Reader, earlier map[string]O, ref sources.Reference,
	read func(context.Context, client.Reader, sources.Reference) (O, error), valueOf func(O, sources.Reference) ([]byte, error),
) ([]byte, error) {
	object, found := earlier[ref.Name]
	if !found {
		var err error
		if object, err = read(ctx, live, ref); err != nil {
			return nil, explainValue(err)
		}

		earlier[ref.Name] = object
	}

	value, err := valueOf(object, ref)
	if err != nil {
		return nil, explainValue(err)
	}

	return value, nil
}

// explainValue makes the errors of From out of those of package sources.
func explainValue(err error) error {
	if missing := sources.Missing(err); missing != nil {
		return &MissingValueError{missing}
	}

	if refused := sources.Refused(err); refused != nil {
		return refused
	}

	return &UnreadableValueError{err}
}

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
