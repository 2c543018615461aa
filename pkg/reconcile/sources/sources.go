// Package sources decides which Secrets users may have the controllers use: as the key of a connection, as a
// kubeconfig, as values, as the source of a copy. It also reads the Secrets and ConfigMaps that a spec refers to, and says
// what becomes of an object of which one is missing or may not be used. It adds our finalizers to Secrets, and takes them off.
//
// The controllers may read every Secret of the namespaces that they serve; a user who may create our objects need not
// have that right. Some Secrets must not be passed on to anybody: those of the operator's own installation, which give
// access to the data of all tenants, and those that Kubernetes and Helm create for themselves. All other Secrets of a
// namespace are available to users who may create objects in it, as they are to users who may create Pods.
package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// secretTypeHelm is the type of Helm's records.
const secretTypeHelm corev1.SecretType = "helm.sh/release.v1"

// RefusedError means that a Secret may not be used. Its text names the Secret, the reason, and the remedy.
type RefusedError struct{ message string }

// Error implements error.
func (e *RefusedError) Error() string { return e.message }

// Refused returns the refusal in an error; nil if it is none.
func Refused(err error) *RefusedError {
	var refused *RefusedError

	errors.As(err, &refused)

	return refused
}

// Policy decides which Secrets may not be used, besides those with a protected type or the label
// v1alpha1.LabelProtected.
type Policy struct {
	// Protected are Secrets by name.
	Protected []types.NamespacedName
}

// Check returns a *RefusedError if a Secret may not be used.
func (p Policy) Check(secret *corev1.Secret) error {
	why := p.Why(secret)
	if why == "" {
		return nil
	}

	return &RefusedError{fmt.Sprintf("Secret %q %s: it is neither copied nor used; put what is needed into a Secret of its own and name that", secret.Name, why)}
}

// Why returns why a Secret may not be used, as the rest of a sentence that begins with its name; empty if it may be.
func (p Policy) Why(secret *corev1.Secret) string {
	why := ""

	switch secret.Type { //nolint:exhaustive // all others are meant to be used
	case corev1.SecretTypeServiceAccountToken:
		why = "holds the token of a ServiceAccount"
	case corev1.SecretTypeBootstrapToken:
		why = "holds a token by which nodes join the cluster"
	case secretTypeHelm:
		why = "holds a record of Helm"
	}

	switch {
	case why != "":
		return why + fmt.Sprintf(" (type %s)", secret.Type)
	case slices.Contains(p.Protected, client.ObjectKeyFromObject(secret)):
		return "belongs to the operator's own installation (--protected-secrets)"
	case secret.Labels[v1alpha1.LabelProtected] == v1alpha1.ProtectedValue:
		return fmt.Sprintf("is protected (label %s)", v1alpha1.LabelProtected)
	default:
		return ""
	}
}

// Manager returns a manager whose API reader returns a *RefusedError for Secrets that may not be used, so that no
// controller can forget the check.
func (p Policy) Manager(mgr manager.Manager) manager.Manager {
	return guarded{Manager: mgr, reader: p.Reader(mgr.GetAPIReader())}
}

type guarded struct {
	manager.Manager

	reader client.Reader
}

// GetAPIReader implements manager.Manager.
func (g guarded) GetAPIReader() client.Reader { return g.reader }

// Reader returns a reader of single objects that returns a *RefusedError for Secrets that may not be used. Such a
// Secret then has its metadata and type, and no content.
func (p Policy) Reader(live client.Reader) client.Reader { return reader{Reader: live, policy: p} }

type reader struct {
	client.Reader

	policy Policy
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, object, options...); err != nil {
		return err
	}

	secret, ok := object.(*corev1.Secret)
	if !ok {
		return nil
	}

	err := r.policy.Check(secret)
	if err != nil {
		secret.Data, secret.StringData = nil, nil
	}

	return err
}

// List implements client.Reader.
func (r reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*corev1.SecretList); ok {
		return errors.New("Secrets are read one by one")
	}

	return r.Reader.List(ctx, list, options...)
}
