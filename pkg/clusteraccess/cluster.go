package clusteraccess

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Cluster is a workload cluster as one kubeconfig leads to it. It is safe for
// concurrent use.
type Cluster struct {
	config    *rest.Config
	transport *http.Transport
	core      *corev1client.CoreV1Client
	claims    claims
	secrets   *redact.Secrets // the credentials
	limit     time.Duration   // of one Read
	probeWait time.Duration   // of those who wait for a probe
	now       func() time.Time
	validated Kinds

	mu         sync.Mutex
	running    chan struct{}   // closed when the probe under way ends; nil if none is
	waiting    <-chan struct{} // closed when nobody waits for that probe any more
	probed     time.Time       // when the last probe ended
	found      Identity
	err        error                 // of the last probe
	unanswered func(context.Context) // what did not end in time, to be asked again; nil if nothing
}

// newCluster reads a kubeconfig. Nothing is sent. Its errors are those of parse.
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

	config, err := newConfig(a, transport, secrets)
	if err != nil {
		return nil, err
	}

	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%w: cluster.server cannot be used", ErrInvalid)
	}

	return &Cluster{
		config: config, transport: transport, core: core, claims: readClaims(a.token), secrets: secrets, now: now,
		limit: readTimeout, probeWait: probeWait,
	}, nil
}

// RESTConfig is a client configuration for the cluster. All copies share the
// connections and the credentials, which are not in its fields. Deadlines are
// the caller's, by context.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Core is a client for Secrets and Namespaces.
func (c *Cluster) Core() corev1client.CoreV1Interface { return c.core }

// Scrub takes the credentials of the kubeconfig out of a text. Whatever a request to
// the cluster ended with needs it before it is shown; Message does it.
func (c *Cluster) Scrub(text string) string { return c.secrets.Remove(text) }

// Server is the URL that the kubeconfig leads to.
func (c *Cluster) Server() string { return c.config.Host }

// expiry is when the token expires; zero if it does not say.
func (c *Cluster) expiry() time.Time { return c.claims.expiry() }

// close ends the idle connections; requests under way go on.
func (c *Cluster) close() { c.transport.CloseIdleConnections() }
