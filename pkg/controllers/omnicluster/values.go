package omnicluster

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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
