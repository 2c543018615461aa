package values

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// MissingError is the error for a valueFrom that refers to something that does not exist yet: an object, or a key in it.
// The renderer adds the object, the field and the reference.
type MissingError struct {
	kind  string
	noKey bool
}

// Error implements error.
func (e *MissingError) Error() string {
	if e.noKey {
		return "the " + e.kind + " has no such key"
	}

	return "the " + e.kind + " does not exist"
}

// UnreadableError is the error for a valueFrom that the API server cannot return now.
type UnreadableError struct{ cause error }

// Error implements error.
func (e *UnreadableError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.cause }

// From returns a function that reads the texts of valueFrom in one namespace, each object once, and records in
// confidential what came from a Secret. It is for one template: a text has at most 1 MiB, and all together 8 MiB.
//
// The function returns a MissingError, an UnreadableError, a refusal to read a Secret (sources.Refused), an error of
// pkg/foreign for a text beyond the bounds, or an error for a source that names neither a ConfigMap nor a Secret.
func From(ctx context.Context, live client.Reader, namespace string, confidential *Secrets) template.ValueFunc {
	return bounded(ctx, unbounded(ctx, live, namespace, confidential))
}

// unbounded is From without the bounds.
func unbounded(ctx context.Context, live client.Reader, namespace string, confidential *Secrets) template.ValueFunc {
	secrets, configMaps := map[string]*corev1.Secret{}, map[string]*corev1.ConfigMap{}

	return func(source v1alpha1.ValueSource) (string, error) {
		switch {
		case source.SecretKeyRef != nil:
			ref := source.SecretKeyRef

			secret, err := readOnce(ctx, live, secrets, "Secret", client.ObjectKey{Namespace: namespace, Name: ref.Name}, &corev1.Secret{})
			if err != nil {
				return "", err
			}

			value, found := secret.Data[ref.Key]
			if !found {
				return "", &MissingError{kind: "Secret", noKey: true}
			}

			confidential.add(value)

			return string(value), nil
		case source.ConfigMapKeyRef != nil:
			ref := source.ConfigMapKeyRef

			configMap, err := readOnce(ctx, live, configMaps, "ConfigMap", client.ObjectKey{Namespace: namespace, Name: ref.Name}, &corev1.ConfigMap{})
			if err != nil {
				return "", err
			}

			if value, found := configMap.Data[ref.Key]; found {
				return value, nil
			}

			if value, found := configMap.BinaryData[ref.Key]; found {
				return string(value), nil
			}

			return "", &MissingError{kind: "ConfigMap", noKey: true}
		}

		return "", errors.New("valueFrom names neither a ConfigMap nor a Secret")
	}
}

// readOnce reads an object, or returns it from an earlier call.
func readOnce[O client.Object](ctx context.Context, reader client.Reader, earlier map[string]O, kind string, key client.ObjectKey, into O) (O, error) {
	if object, found := earlier[key.Name]; found {
		return object, nil
	}

	err := reader.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return into, &MissingError{kind: kind}
	}

	if refused := sources.Refused(err); refused != nil {
		return into, refused
	}

	if err != nil {
		return into, &UnreadableError{fmt.Errorf("read %s %q: %w", kind, key.Name, err)}
	}

	earlier[key.Name] = into

	return into, nil
}
