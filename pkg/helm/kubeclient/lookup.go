package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// lookups answers the lookups of templates, as Helm's function does it, but passes
// on what the cluster says without decoding it.
type lookups struct {
	kinds  discovery.CachedDiscoveryInterface
	client *rest.RESTClient
}

// NewLookup makes what answers the lookups of templates from the cluster behind config, whose kinds clients knows. An
// answer has render.MaxReply bytes at most. All its requests end with ctx.
func NewLookup(ctx context.Context, config *rest.Config, clients action.RESTClientGetter) (render.Lookup, error) {
	kinds, err := clients.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}

	config = Bounded(ctx, config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.DisableCompression = true
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &shortAnswers{next} })

	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the workload cluster: %w", err)
	}

	return (&lookups{kinds: kinds, client: client}).answer, nil
}

// answer implements render.Lookup.
func (l *lookups) answer(ctx context.Context, question render.Question) render.Reply {
	location, err := l.path(question)
	if err != nil {
		return render.Reply{Error: err.Error()}
	}

	if location == "" {
		return render.Reply{}
	}

	result := l.client.Get().AbsPath(location).SetHeader("Accept", "application/json").Do(ctx)

	err = result.Error()
	if clusteraccess.NotFound(err) {
		return render.Reply{}
	}

	if errors.Is(err, errLongAnswer) {
		return render.Reply{Error: fmt.Sprintf("lookup: what was found has more than %d MiB: look up one object by its name", render.MaxReply>>20)}
	}

	if err != nil {
		return render.Reply{Error: err.Error()}
	}

	found, err := result.Raw()
	if err != nil {
		return render.Reply{Error: err.Error()}
	}

	return render.Reply{Object: found}
}

// path is where the cluster has what a template asks for; empty if it has no such kind.
func (l *lookups) path(question render.Question) (string, error) {
	kind := schema.FromAPIVersionAndKind(question.APIVersion, question.Kind)

	known, err := l.kinds.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return "", fmt.Errorf("unable to get apiresource from unstructured: %s: the server could not find the requested resource", kind)
	}

	var found metav1.APIResource

	for i := range known.APIResources {
		if one := &known.APIResources[i]; one.Kind == kind.Kind && !strings.Contains(one.Name, "/") {
			found = *one

			break
		}
	}

	segments := []string{"/apis", kind.Group, kind.Version}
	if kind.Group == "" {
		segments = []string{"/api", kind.Version}
	}

	if found.Namespaced && question.Namespace != "" {
		segments = append(segments, "namespaces", question.Namespace)
	}

	segments = append(segments, found.Name)

	if question.Name != "" {
		segments = append(segments, question.Name)
	}

	for _, segment := range segments[1:] {
		if wrong := rest.IsValidPathSegmentName(segment); len(wrong) > 0 {
			return "", fmt.Errorf("lookup: %q %s", segment, wrong[0])
		}
	}

	if found.Name == "" {
		return "", nil
	}

	return strings.Join(segments, "/"), nil
}

// errLongAnswer is an answer that is longer than a worker takes.
var errLongAnswer = errors.New("the answer is too long")

// shortAnswers cuts answers off that are too long.
type shortAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s *shortAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	response.Body = &shortBody{ReadCloser: response.Body, left: render.MaxReply}

	return response, nil
}

type shortBody struct {
	io.ReadCloser

	left int
}

// Read implements io.Reader.
func (b *shortBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errLongAnswer
	}

	return n, err
}
