package sources

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// Reference refers to a Secret or a ConfigMap in the namespace of the object that refers to it.
type Reference struct {
	// Namespace is the object's namespace, Name the name of the Secret or ConfigMap.
	Namespace, Name string
	// Key is the key of the value. It is not needed to read only the object.
	Key string
	// Field is the field of the spec with the reference, for messages; empty if it is obvious.
	Field string
}

// MissingError means that a Secret or a ConfigMap, or the key in it, does not exist.
type MissingError struct {
	Kind string
	Reference
	// NoKey is true if the object exists, without the key.
	NoKey bool
}

// Error returns what is missing, and which field refers to it.
func (e *MissingError) Error() string {
	what := fmt.Sprintf("%s %q", e.Kind, e.Name)
	if e.Field != "" {
		what += " (" + e.Field + ")"
	}

	if e.NoKey {
		return fmt.Sprintf("%s has no key %q", what, e.Key)
	}

	return what + " does not exist"
}

// Missing returns the MissingError in an error; nil if there is none.
func Missing(err error) *MissingError {
	var missing *MissingError

	errors.As(err, &missing)

	return missing
}

// Outcome returns the outcome for an object whose references cannot be read, the same for all kinds; done is false for
// other errors and for none.
//
// The object waits for something that is missing, an object as well as a key: it can be added at any time, in any
// order, and a watch reports it. A Secret that may not be used needs a person. So does a value that cannot be parsed,
// which only the reader of the value can find out.
func Outcome(err error, reasonMissing, staysAsItIs string) (outcome loop.Outcome, done bool) {
	switch missing := Missing(err); {
	case Refused(err) != nil:
		return loop.Stall(v1alpha1.ReasonSecretProtected, "%s%s", err, staysAsItIs), true
	case missing != nil:
		return loop.Wait(0, reasonMissing, "%s%s", missing, staysAsItIs), true
	default:
		return loop.Outcome{}, false
	}
}

// Secret reads a Secret from a Reader. Its errors are *MissingError, *RefusedError, with
// the Secret's metadata, and others of the API.
func Secret(ctx context.Context, live client.Reader, ref Reference) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret)

	return secret, explain(err, "Secret", ref)
}

// SecretValue reads one value of a Secret from a Reader. Its errors are those of Secret.
func SecretValue(ctx context.Context, live client.Reader, ref Reference) ([]byte, error) {
	secret, err := Secret(ctx, live, ref)
	if err != nil {
		return nil, err
	}

	return ValueOf(secret, ref)
}

// ValueOf returns a value of a Secret that was read. The error is a *MissingError.
func ValueOf(secret *corev1.Secret, ref Reference) ([]byte, error) {
	value, found := secret.Data[ref.Key]
	if !found {
		return nil, &MissingError{Kind: "Secret", Reference: ref, NoKey: true}
	}

	return value, nil
}

// ConfigMap reads a ConfigMap. Its errors are *MissingError and others of the API.
func ConfigMap(ctx context.Context, live client.Reader, ref Reference) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{}
	err := live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, configMap)

	return configMap, explain(err, "ConfigMap", ref)
}

// ConfigMapValue reads one value of a ConfigMap, text or binary. Its errors are those of ConfigMap.
func ConfigMapValue(ctx context.Context, live client.Reader, ref Reference) ([]byte, error) {
	configMap, err := ConfigMap(ctx, live, ref)
	if err != nil {
		return nil, err
	}

	return ValueOfConfigMap(configMap, ref)
}

// ValueOfConfigMap returns a value, text or binary, of a ConfigMap that was read. The error is a *MissingError.
func ValueOfConfigMap(configMap *corev1.ConfigMap, ref Reference) ([]byte, error) {
	if value, found := configMap.Data[ref.Key]; found {
		return []byte(value), nil
	}

	if value, found := configMap.BinaryData[ref.Key]; found {
		return value, nil
	}

	return nil, &MissingError{Kind: "ConfigMap", Reference: ref, NoKey: true}
}

func explain(err error, kind string, ref Reference) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return &MissingError{Kind: kind, Reference: ref}
	case Refused(err) != nil && ref.Field != "":
		return fmt.Errorf("%s: %w", ref.Field, err)
	case Refused(err) != nil:
		return err
	default:
		return fmt.Errorf("read %s %q: %w", kind, ref.Name, err)
	}
}
