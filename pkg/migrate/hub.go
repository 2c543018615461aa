package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
)

const (
	// callTimeout bounds one call, with its answer.
	callTimeout = 30 * time.Second
	// pageSize is how many objects one call lists, maxObjects how many of one resource there may be.
	pageSize   = 100
	maxObjects = 50_000
	// fieldManager is the field manager of all writes.
	fieldManager = "omni-migrate"
)

// The resources that are not ours.
//
//nolint:gochecknoglobals // constants
var (
	definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServicesResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	podsResource        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secretsResource     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespacesResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	validatingResource  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutatingResource    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
)

// hub is the management cluster. Every call has a deadline, and every answer a size limit. Secrets are read as
// metadata only.
type hub struct {
	objects  dynamic.Interface
	metadata metadata.Interface
}

func newHub(config *rest.Config) (*hub, error) {
	bounded := rest.CopyConfig(config)
	bounded.Timeout = callTimeout
	bounded.QPS, bounded.Burst = 100, 200
	bounded.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedTransport{next} })

	objects, err := dynamic.NewForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("reach the management cluster: %w", err)
	}

	secrets, err := metadata.NewForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("reach the management cluster: %w", err)
	}

	return &hub{objects, secrets}, nil
}

// boundedTransport limits the size of answers; a page of large objects fits.
type boundedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	const limit = 256 << 20

	response, err := t.next.RoundTrip(request)
	if err == nil {
		response.Body = struct{ io.ReadCloser }{
			answer.NewReader(request.Context(), response.Body, answer.Limits{Bytes: limit, Memory: 8 * limit, Small: 8 * limit}, nil),
		}
	}

	return response, err //nolint:wrapcheck // client-go knows its errors
}

// explain says what failed, and the remedy if there is one.
func explain(action string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: run this as an administrator of the cluster", action, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: the management cluster did not answer in time: run the command again: %w", action, err)
	default:
		return fmt.Errorf("%s: %w", action, err)
	}
}

func describe(resource schema.GroupVersionResource, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}

	return resource.Resource + " " + name
}

func (h *hub) in(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return h.objects.Resource(resource)
	}

	return h.objects.Resource(resource).Namespace(namespace)
}

// get returns nil for an object that does not exist.
func (h *hub) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	found, err := h.in(resource, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // what is not there is an answer
	}

	if err != nil {
		return nil, explain("get "+describe(resource, namespace, name), err)
	}

	return found, nil
}

// list reads all objects of a resource, page by page. A resource that is not served has no objects.
func (h *hub) list(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string) ([]unstructured.Unstructured, error) {
	return listAll[unstructured.Unstructured](ctx, resource, selector, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return h.in(resource, namespace).List(ctx, options)
	})
}

// listSecrets reads the metadata of all Secrets, never their content.
func (h *hub) listSecrets(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return listAll[metav1.PartialObjectMetadata](ctx, secretsResource, "", func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return h.metadata.Resource(secretsResource).List(ctx, options)
	})
}

func listAll[T any](ctx context.Context, resource schema.GroupVersionResource, selector string, page pager.ListPageFunc) ([]T, error) {
	var all []T

	pages := &pager.ListPager{PageSize: pageSize, PageFn: page}

	err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(item runtime.Object) error {
		one, is := any(item).(*T)

		switch {
		case !is:
			return fmt.Errorf("the answer has a %T", item)
		case len(all) == maxObjects:
			return fmt.Errorf("there are more than %d", maxObjects)
		}

		all = append(all, *one)

		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	return all, explain("list "+resource.Resource, err)
}

// patch changes fields by a JSON merge patch. If the object is gone, that is no error.
func (h *hub) patch(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, fields map[string]any) error {
	return mergePatch(describe(resource, namespace, name), fields, func(body []byte) error {
		_, err := h.in(resource, namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})

		return err
	})
}

// patchSecret changes the metadata of a Secret.
func (h *hub) patchSecret(ctx context.Context, namespace, name string, fields map[string]any) error {
	return mergePatch(describe(secretsResource, namespace, name), fields, func(body []byte) error {
		_, err := h.metadata.Resource(secretsResource).Namespace(namespace).
			Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})

		return err
	})
}

func mergePatch(what string, fields map[string]any, send func(body []byte) error) error {
	body, err := json.Marshal(fields)
	if err == nil {
		err = send(body)
	}

	if apierrors.IsNotFound(err) {
		return nil
	}

	return explain("change "+what, err)
}

// create creates an object. It returns false if one of that name exists.
func (h *hub) create(ctx context.Context, resource schema.GroupVersionResource, obj *unstructured.Unstructured) (bool, error) {
	_, err := h.in(resource, obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}

	return err == nil, explain("create "+describe(resource, obj.GetNamespace(), obj.GetName()), err)
}

// remove deletes exactly the object that was read. If it is gone, that is no error.
func (h *hub) remove(ctx context.Context, resource schema.GroupVersionResource, obj *unstructured.Unstructured) error {
	uid := obj.GetUID()

	err := h.in(resource, obj.GetNamespace()).Delete(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}

	return explain("delete "+describe(resource, obj.GetNamespace(), obj.GetName()), err)
}

// patchTheirs changes fields of an object of the operator with CRDs.
func (m *Migration) patchTheirs(ctx context.Context, s *state, obj *unstructured.Unstructured, fields map[string]any) error {
	resource, err := s.resourceOf(obj)
	if err != nil {
		return err
	}

	return m.hub.patch(ctx, resource, obj.GetNamespace(), obj.GetName(), fields)
}

// patchOurs changes fields of an object that was imported.
func (m *Migration) patchOurs(ctx context.Context, c *Converted, fields map[string]any) error {
	of, known := kindNamed(c.Kind)
	if !known {
		return fmt.Errorf("%s: this operator has no such kind", c.ID())
	}

	return m.hub.patch(ctx, of.resource(), c.Namespace, c.Name, fields)
}

// scale sets the replicas of a Deployment.
func (m *Migration) scale(ctx context.Context, deployment *unstructured.Unstructured, replicas int64) error {
	return m.hub.patch(ctx, deploymentsResource, deployment.GetNamespace(), deployment.GetName(), map[string]any{"spec": map[string]any{"replicas": replicas}})
}
