// Package kubeclient makes what Helm uses to talk to a workload cluster: requests that end, clients, lookups of
// templates, and a guard. That keeps updates and hooks off what is not the release's, and does without objects of kinds
// that are not served any more. The API server alone validates fields. Only pkg/helm uses it.
package kubeclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/validation"
)

// requestTimeout bounds one request that is no watch.
const requestTimeout = 30 * time.Second

// Bounded makes a copy of a configuration whose requests all end with ctx, and
// after 30 seconds unless they watch. None is sent after the end of ctx. Helm
// itself gives its requests neither end.
func Bounded(ctx context.Context, config *rest.Config) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.Wrap(func(next http.RoundTripper) http.RoundTripper { return &boundedTransport{ctx: ctx, next: next} })
	// The workload cluster protects itself; a small limit here only makes large charts slow.
	copied.QPS = -1
	copied.WarningHandlerWithContext = rest.NoWarnings{}

	return copied
}

type boundedTransport struct {
	ctx  context.Context //nolint:containedctx // the only way to give Helm's requests an end
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	// client-go asks again after a pause that ends with the context of the call only.
	if err := t.ctx.Err(); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // RoundTrip must always close it
		}

		return nil, err
	}

	begin := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(request.Context(), requestTimeout)
	}
	if request.URL.Query().Get("watch") != "" {
		begin = func() (context.Context, context.CancelFunc) { return context.WithCancel(request.Context()) }
	}

	ctx, cancel := begin()

	stop := context.AfterFunc(t.ctx, cancel)
	end := func() { stop(); cancel() }

	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		end()

		return nil, err
	}

	response.Body = &endingBody{ReadCloser: response.Body, end: end}

	return response, nil
}

// endingBody gives back a request's context when its answer was read.
type endingBody struct {
	io.ReadCloser

	end func()
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()

	return b.ReadCloser.Close()
}

// getter gives Helm its clients. Objects without a namespace land in the
// release's, whatever a kubeconfig's context says.
type getter struct {
	config    *rest.Config
	namespace string
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
}

// NewGetter makes what gives Helm its clients for a cluster, none of which is connected yet. Namespace is that of the
// release: objects that name none land there. The error is that of a configuration that no client can be made of.
func NewGetter(config *rest.Config, namespace string) (genericclioptions.RESTClientGetter, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client for the workload cluster: %w", err)
	}

	cached := memory.NewMemCacheClient(client)

	return &getter{config: config, namespace: namespace, discovery: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient implements genericclioptions.RESTClientGetter.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

// ToRESTMapper implements genericclioptions.RESTClientGetter.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader implements genericclioptions.RESTClientGetter. Helm asks
// it for the namespace only.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig { return &namespaced{getter: g} }

// namespaced is a client configuration that never reads a file.
type namespaced struct{ getter *getter }

// RawConfig implements clientcmd.ClientConfig.
func (n *namespaced) RawConfig() (clientcmdapi.Config, error) { return clientcmdapi.Config{}, nil }

// ClientConfig implements clientcmd.ClientConfig.
func (n *namespaced) ClientConfig() (*rest.Config, error) { return n.getter.ToRESTConfig() }

// Namespace implements clientcmd.ClientConfig.
func (n *namespaced) Namespace() (string, bool, error) { return n.getter.namespace, true, nil }

// ConfigAccess implements clientcmd.ClientConfig.
func (n *namespaced) ConfigAccess() clientcmd.ConfigAccess { return nil }

// deletions notes whether objects were seen to be gone. Helm removes the records
// of a release even if they were not. It is safe for concurrent use.
type deletions struct {
	mu  sync.Mutex
	err error
}

// Undeleted is the first error of waiting for deletions, which is why objects may be left; nil if none are.
func (g *Guard) Undeleted() error {
	g.deletions.mu.Lock()
	defer g.deletions.mu.Unlock()

	return g.deletions.err
}

// GetWaiterWithOptions implements kube.InterfaceWaitOptions.
func (c *guardedClient) GetWaiterWithOptions(strategy kube.WaitStrategy, options ...kube.WaitOption) (kube.Waiter, error) {
	waiter, err := c.Client.GetWaiterWithOptions(strategy, options...)
	if err != nil {
		return nil, err
	}

	return &deletingWaiter{Waiter: waiter, deletions: &c.guard.deletions}, nil
}

// deletingWaiter notes what comes of waiting for deletions.
type deletingWaiter struct {
	kube.Waiter

	deletions *deletions
}

// WaitForDelete implements kube.Waiter.
func (w *deletingWaiter) WaitForDelete(resources kube.ResourceList, timeout time.Duration) error {
	err := w.Waiter.WaitForDelete(resources, timeout)

	w.deletions.mu.Lock()
	defer w.deletions.mu.Unlock()

	if w.deletions.err == nil {
		w.deletions.err = err
	}

	return err
}

// ValidateByServer leaves the validation of fields to the API server, which Helm asks for it in each write. Helm would look into
// the OpenAPI document of a kind's group whether the server does that, in each action, which takes more processor time than the rest
// of a small chart's installation; and for a kind that is not there, such as that of a list, it would read the OpenAPI document of
// all kinds, as protobuf, which package clusteraccess does not let through. The items of a list are written one by one. All servers
// since Kubernetes 1.25 validate; an aggregated one that does not ignores unknown fields. The error is that of a configuration
// without the client that Helm makes.
func ValidateByServer(config *action.Configuration) error {
	client, ok := config.KubeClient.(*kube.Client)
	if !ok {
		return fmt.Errorf("the client of Helm has the unknown type %T", config.KubeClient)
	}

	client.Factory = &unvalidating{client.Factory}

	return nil
}

// unvalidating is Helm's factory without its validator.
type unvalidating struct{ kube.Factory }

// Validator implements kube.Factory.
func (*unvalidating) Validator(string) (validation.Schema, error) {
	return validation.NullSchema{}, nil
}
