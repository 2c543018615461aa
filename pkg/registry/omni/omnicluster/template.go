package omnicluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// TemplateMediaType is the content type of a rendered template. Clients that ask for anything but
// YAML, JSON or */* are refused by content negotiation before the template is rendered.
const TemplateMediaType = "application/yaml"

// TemplateSources are the stores that a template is rendered from.
type TemplateSources struct {
	// Clusters reads the OmniCluster.
	Clusters rest.Getter
	// ControlPlanes, Workers and Machines list the other documents.
	ControlPlanes, Workers, Machines Lister
}

// Lister lists the objects of one kind in the namespace of the request.
type Lister interface {
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// TemplateREST serves the template subresource: the Omni cluster template that the stored objects give now. It reads
// only objects of this server; a ConfigMap or Secret appears only as a reference.
type TemplateREST struct {
	sources TemplateSources
	hub     template.Hub
}

var (
	_ rest.Getter          = &TemplateREST{}
	_ rest.StorageMetadata = &TemplateREST{}
)

// NewTemplateREST makes the subresource. The hub's name and ID go into the ownership mark, as the controller writes
// it.
func NewTemplateREST(sources TemplateSources, hub template.Hub) *TemplateREST {
	return &TemplateREST{sources: sources, hub: hub}
}

// New returns the object that discovery shows.
func (r *TemplateREST) New() runtime.Object { return &v1alpha1.OmniCluster{} }

// Destroy does nothing: the stores belong to the main resources.
func (r *TemplateREST) Destroy() {}

// ProducesMIMETypes returns the content types of GET for the OpenAPI document.
func (r *TemplateREST) ProducesMIMETypes(verb string) []string {
	if verb != http.MethodGet {
		return nil
	}

	return []string{TemplateMediaType}
}

// ProducesObject returns the type of the answer for the OpenAPI document: a text.
func (r *TemplateREST) ProducesObject(string) any { return "" }

// Get renders the template of the named cluster. It returns NotFound if there is no such cluster, and status 422 if
// its documents do not form a template; the reason of that error is a reason of the condition Assembled, such as
// ControlPlaneMissing.
func (r *TemplateREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	input, err := r.read(ctx, name, options)
	if err != nil {
		return nil, err
	}

	documents, err := template.Assemble(*input)
	if err != nil {
		return nil, notATemplate(name, err)
	}

	text, err := documents.Render(template.Reference, template.MarkOf(input.Cluster, r.hub))
	if err != nil {
		return nil, notATemplate(name, err)
	}

	return &renderedTemplate{OmniCluster: v1alpha1.OmniCluster{ObjectMeta: input.Cluster.ObjectMeta}, text: text}, nil
}

func (r *TemplateREST) read(ctx context.Context, name string, options *metav1.GetOptions) (*template.Input, error) {
	// The error is returned unwrapped: a wrapped "try again later" would become an internal server error.
	found, err := r.sources.Clusters.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}

	cluster, err := as[*v1alpha1.OmniCluster](found)
	if err != nil {
		return nil, err
	}

	controlPlanes, err := list[*v1alpha1.OmniControlPlaneList](ctx, r.sources.ControlPlanes, name)
	if err != nil {
		return nil, err
	}

	workers, err := list[*v1alpha1.OmniWorkersList](ctx, r.sources.Workers, name)
	if err != nil {
		return nil, err
	}

	machines, err := list[*v1alpha1.OmniMachineList](ctx, r.sources.Machines, name)
	if err != nil {
		return nil, err
	}

	return &template.Input{
		Cluster:       cluster,
		ControlPlanes: controlPlanes.Items,
		Workers:       workers.Items,
		Machines:      machines.Items,
	}, nil
}

// list reads the objects that name the cluster.
func list[L runtime.Object](ctx context.Context, lister Lister, cluster string) (L, error) {
	found, err := lister.List(ctx, &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(v1alpha1.ClusterRefField, cluster),
	})
	if err != nil {
		var none L

		return none, err
	}

	return as[L](found)
}

// as converts what a store returned to its type.
func as[T runtime.Object](found runtime.Object) (T, error) {
	typed, ok := found.(T)
	if !ok {
		return typed, apierrors.NewInternalError(fmt.Errorf("read %T for the template", found))
	}

	return typed, nil
}

// notATemplate is the error for stored objects that do not form a template. The request itself is fine, so the reason
// of the error says what is missing or in conflict.
func notATemplate(name string, err error) error {
	reason := v1alpha1.ReasonTemplateInvalid

	var assembly *template.AssembleError
	if errors.As(err, &assembly) {
		reason = assembly.Reason
	}

	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReason(reason),
		Message: fmt.Sprintf("OmniCluster %q has no template: %s", name, err),
		Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "OmniCluster", Name: name},
	}}
}

// renderedTemplate streams a template. It is not an API type: only its stream is sent. A client that asks for
// metadata only gets the cluster's.
type renderedTemplate struct {
	v1alpha1.OmniCluster

	text []byte
}

var _ rest.ResourceStreamer = &renderedTemplate{}

// InputStream hands out the text.
func (t *renderedTemplate) InputStream(context.Context, string, string) (io.ReadCloser, bool, string, error) {
	return io.NopCloser(bytes.NewReader(t.text)), false, TemplateMediaType, nil
}

// DeepCopyObject copies the text too.
func (t *renderedTemplate) DeepCopyObject() runtime.Object {
	return &renderedTemplate{OmniCluster: *t.OmniCluster.DeepCopy(), text: bytes.Clone(t.text)}
}
