package clusteraccess

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Cluster is the workload cluster of one kubeconfig. It is safe for concurrent use.
type Cluster struct {
	config      *rest.Config
	digest      string // of the kubeconfig
	transport   *http.Transport
	core        *corev1client.CoreV1Client
	claims      claims
	secrets     *redact.Secrets // the credentials
	readTimeout time.Duration
	probeWait   time.Duration // how long callers wait for a probe
	now         func() time.Time

	mu         sync.Mutex
	probeEnded chan struct{}   // closed when the running probe ends; nil if none runs
	waitOver   <-chan struct{} // closed when callers stop waiting for that probe
	probed     time.Time       // when the last probe ended
	found      Identity
	err        error             // of the last probe
	failing    time.Time         // since when no probe succeeds; zero if the last one did
	waiting    map[string]func() // wakes the requesters that wait for an answer
	onRefusal  func()            // called for every answer 401; may be nil
	askAgain   *unanswered       // nil if no request timed out
}

// newCluster reads a kubeconfig. Nothing is sent. Errors: those of parse.
func newCluster(ctx context.Context, kubeconfig []byte, now func() time.Time, guard dialguard.Guard) (*Cluster, error) {
	a, err := parse(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}

	transport, err := newTransport(a, guard)
	if err != nil {
		return nil, err
	}

	secrets := a.secrets()

	c := &Cluster{
		transport: transport, claims: readClaims(a.token), secrets: secrets, now: now, readTimeout: readTimeout, probeWait: probeWait,
	}

	if c.config, err = newConfig(a, transport, secrets, c.refused); err != nil {
		return nil, err
	}

	if c.core, err = corev1client.NewForConfig(c.config); err != nil {
		return nil, fmt.Errorf("%w: cluster.server cannot be used", ErrInvalid)
	}

	return c, nil
}

// Look asks the server of a kubeconfig for its version, with a connection of its own that is closed then, and returns why that is
// not answered; nil if it is. Nothing of it is kept, and no slot is taken. The caller sets the deadline by the context.
//
// Errors: ErrUnsafe and ErrInvalid, before anything is sent, or those of the request, without the credentials; see KeyDeleted
// and Reason.
func Look(ctx context.Context, kubeconfig []byte, guard dialguard.Guard) error {
	cluster, err := newCluster(ctx, kubeconfig, time.Now, guard)
	if err != nil {
		return err
	}
	defer cluster.close()

	if _, err := cluster.get(ctx, "/version"); err != nil {
		return cluster.secrets.Error(err)
	}

	return nil
}

// refused is called for every answer 401: the credentials do not count any more, whatever the last probe found.
func (c *Cluster) refused() {
	c.Invalidate()

	if c.onRefusal != nil {
		c.onRefusal()
	}
}

// RESTConfig returns a client configuration for the cluster. All copies share the connections and the credentials,
// which are not in its fields. The caller sets deadlines by context.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Core returns a client for Secrets and Namespaces.
func (c *Cluster) Core() corev1client.CoreV1Interface { return c.core }

// Scrub removes the credentials of the kubeconfig from a text. Every error of a request to the cluster needs it before
// it is shown; Message includes it.
func (c *Cluster) Scrub(text string) string { return c.secrets.Remove(text) }

// Server returns the kubeconfig's server URL.
func (c *Cluster) Server() string { return c.config.Host }

// expiry returns when the token expires; zero if unknown.
func (c *Cluster) expiry() time.Time { return c.claims.expiry() }

// close ends the idle connections; requests under way go on.
func (c *Cluster) close() { c.transport.CloseIdleConnections() }

// route is how connections to a cluster are made.
type route struct {
	proxy  func(*http.Request) (*url.URL, error)
	dialer *net.Dialer
}

// route finds the way to the server; the connections are used for no other. The guard decides about every address that
// the kubeconfig chose: the server's, or that of its proxy-url. The proxy of the environment is the operator's choice
// and may have any address. A proxy decides itself where it connects to; only a server that is given as an address can
// be checked here. Errors: ErrUnsafe; ErrInvalid if the server is no URL.
func (a *settings) route(environment func(*http.Request) (*url.URL, error), guard dialguard.Guard) (route, error) {
	server, err := url.Parse(a.server)
	if err != nil {
		return route{}, fmt.Errorf("%w: cluster.server is no URL", ErrInvalid)
	}

	if err := guard.CheckHost(server.Hostname()); err != nil {
		return route{}, fmt.Errorf("%w: cluster.server %w", ErrUnsafe, err)
	}

	if a.proxy != nil {
		if err := guard.CheckHost(a.proxy.Hostname()); err != nil {
			return route{}, fmt.Errorf("%w: cluster.proxy-url %w", ErrUnsafe, err)
		}

		return route{proxy: http.ProxyURL(a.proxy), dialer: guard.Dialer(dialTimeout)}, nil
	}

	// An error of the environment becomes the error of every request.
	proxy, err := environment(&http.Request{URL: server})
	way := route{
		proxy:  func(*http.Request) (*url.URL, error) { return proxy, err },
		dialer: guard.Dialer(dialTimeout),
	}

	if proxy != nil {
		way.dialer = &net.Dialer{Timeout: dialTimeout}
	}

	return way, nil
}
