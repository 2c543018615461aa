package omnicluster

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

// missingValueError is the error for a valueFrom that refers to something that does not exist yet. The renderer adds
// the object, the field and the reference.
type missingValueError struct {
	kind  string
	noKey bool
}

// Error implements error.
func (e *missingValueError) Error() string {
	if e.noKey {
		return "the " + e.kind + " has no such key"
	}

	return "the " + e.kind + " does not exist"
}

// unreadableValueError is the error for a valueFrom that the API server cannot return now.
type unreadableValueError struct{ cause error }

// Error implements error.
func (e *unreadableValueError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *unreadableValueError) Unwrap() error { return e.cause }

// values returns a function that reads the texts of valueFrom from the API server, each object once, and records what
// came from a Secret.
func (r *reconciler) values(ctx context.Context, namespace string, confidential *secrets) template.ValueFunc {
	secrets, configMaps := map[string]*corev1.Secret{}, map[string]*corev1.ConfigMap{}

	return func(source v1alpha1.ValueSource) (string, error) {
		switch {
		case source.SecretKeyRef != nil:
			ref := source.SecretKeyRef

			secret, err := readOnce(ctx, r.live, secrets, "Secret", client.ObjectKey{Namespace: namespace, Name: ref.Name}, &corev1.Secret{})
			if err != nil {
				return "", err
			}

			value, found := secret.Data[ref.Key]
			if !found {
				return "", &missingValueError{kind: "Secret", noKey: true}
			}

			confidential.add(value)

			return string(value), nil
		case source.ConfigMapKeyRef != nil:
			ref := source.ConfigMapKeyRef

			configMap, err := readOnce(ctx, r.live, configMaps, "ConfigMap", client.ObjectKey{Namespace: namespace, Name: ref.Name}, &corev1.ConfigMap{})
			if err != nil {
				return "", err
			}

			if value, found := configMap.Data[ref.Key]; found {
				return value, nil
			}

			if value, found := configMap.BinaryData[ref.Key]; found {
				return string(value), nil
			}

			return "", &missingValueError{kind: "ConfigMap", noKey: true}
		}

		return "", errors.New("valueFrom names neither a ConfigMap nor a Secret")
	}
}

// readOnce reads an object, or returns it from an earlier call.
func readOnce[O client.Object](ctx context.Context, reader client.Reader, known map[string]O, kind string, key client.ObjectKey, into O) (O, error) {
	if object, found := known[key.Name]; found {
		return object, nil
	}

	err := reader.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return into, &missingValueError{kind: kind}
	}

	if refused := sources.Refused(err); refused != nil {
		return into, refused
	}

	if err != nil {
		return into, &unreadableValueError{fmt.Errorf("read %s %q: %w", kind, key.Name, err)}
	}

	known[key.Name] = into

	return into, nil
}
