// Package kubectl is what tests use of kubectl without a process of it.
//
// A process takes a fifth of a second of a processor, most of it to start and to read OpenAPI documents, and tests apply a
// thousand times what is not their subject. What a user sees of kubectl is tested with kubectl itself.
package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubectl/pkg/util"
)

// fieldManager is that of `kubectl apply`.
const fieldManager = "kubectl-client-side-apply"

// requestTimeout bounds each request, in time.
const requestTimeout = time.Minute

// yamlBufferSize is how much of a manifest is looked at to tell JSON from YAML, in bytes.
const yamlBufferSize = 4096

// Applier applies manifests to one cluster. It keeps what it has read of the cluster's kinds, and asks again for a kind that
// it does not know. Its methods may be called from several goroutines.
type Applier struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

// NewApplier returns an Applier for the cluster and user of a configuration. It sends no request.
func NewApplier(config *rest.Config) (*Applier, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	config.Timeout = requestTimeout

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}

	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster's kinds: %w", err)
	}

	return &Applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))}, nil
}

// Apply makes the objects of manifests, or changes what the manifests say of those that are there, as `kubectl apply` does of
// kinds that are not Kubernetes' own: what the last manifest said and this one does not is removed, what others set stays, and
// a list is one value. It drops warnings, and refuses objects of another namespace. The error is of all objects that were
// refused; the others are applied.
func (a *Applier) Apply(ctx context.Context, namespace string, manifests ...string) error {
	var errs []error

	for reader := yaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.Join(manifests, "\n---\n")), yamlBufferSize); ; {
		var manifest runtime.RawExtension

		switch err := reader.Decode(&manifest); {
		case errors.Is(err, io.EOF):
			return errors.Join(errs...)
		case err != nil:
			return errors.Join(append(errs, fmt.Errorf("read manifests: %w", err))...)
		case len(manifest.Raw) == 0 || string(manifest.Raw) == "null":
			continue
		}

		object := &unstructured.Unstructured{} // by itself, or integers became floating-point numbers
		if err := object.UnmarshalJSON(manifest.Raw); err != nil {
			errs = append(errs, fmt.Errorf("read a manifest: %w", err))
		} else if err := a.apply(ctx, namespace, object); err != nil {
			errs = append(errs, fmt.Errorf("apply %s %q: %w", object.GetKind(), object.GetName(), err))
		}
	}
}

func (a *Applier) apply(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	client, err := a.clientFor(namespace, object)
	if err != nil {
		return err
	}

	// With the annotation of what was applied last.
	wanted, err := util.GetModifiedConfiguration(object, true, unstructured.UnstructuredJSONScheme)
	if err != nil {
		return err
	}

	found, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return create(ctx, client, wanted)
	} else if err != nil {
		return err
	}

	return change(ctx, client, found, wanted)
}

// clientFor returns the client of an object's kind, and sets the namespace of an object that names none.
func (a *Applier) clientFor(namespace string, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()

	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) { // it may be new
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}

	switch {
	case err != nil:
		return nil, err
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return a.client.Resource(mapping.Resource), nil
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	case object.GetNamespace() != namespace:
		return nil, fmt.Errorf("it is of namespace %q, not of %q", object.GetNamespace(), namespace)
	}

	return a.client.Resource(mapping.Resource).Namespace(namespace), nil
}

func create(ctx context.Context, client dynamic.ResourceInterface, wanted []byte) error {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(wanted); err != nil {
		return err
	}

	_, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict})

	return err
}

func change(ctx context.Context, client dynamic.ResourceInterface, found *unstructured.Unstructured, wanted []byte) error {
	former, err := util.GetOriginalConfiguration(found)
	if err != nil {
		return err
	}

	current, err := found.MarshalJSON()
	if err != nil {
		return err
	}

	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(former, wanted, current)
	if err != nil || string(patch) == "{}" {
		return err
	}

	_, err = client.Patch(ctx, found.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict})

	return err
}
