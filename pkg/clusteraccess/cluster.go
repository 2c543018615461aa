package clusteraccess

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

const (
	// probeTimeout bounds one probe.
	probeTimeout = 15 * time.Second
	// probeWait is how long callers wait for a probe, from its start. A dead cluster
	// then costs each worker this much per probe, however many objects it has.
	probeWait = time.Second
	// goodFor and badFor are how long the answer of a probe counts.
	goodFor = time.Minute
	badFor  = 15 * time.Second
)

// namespaceLimits bound the namespace kube-system, of which only the UID is kept.
//
//nolint:gochecknoglobals // a constant
var namespaceLimits = foreign.Limits{Bytes: 512 << 10, Depth: 64, Nodes: 20_000, Expanded: 512 << 10}

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

// Identify asks the cluster whether it answers, and which one it is. The answer
// counts for a while, so that a thousand objects on one cluster cost one request
// a minute, and a dead cluster one attempt at a time. While a cluster that did not
// answer is asked again, the old failure stands. ErrProbing says that the answer
// is not there yet; other errors are those of the request.
func (c *Cluster) Identify(ctx context.Context) (Identity, error) {
	ended, waiting, found, err := c.ask()
	if ended == nil {
		return found, err
	}

	select {
	case <-ended:
	case <-waiting:
		if ctx.Err() == nil {
			return Identity{}, c.meanwhile()
		}
	case <-ctx.Done():
	}

	if ctx.Err() != nil {
		return Identity{}, fmt.Errorf("ask the workload cluster: %w", ctx.Err())
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	return c.found, c.err
}

// meanwhile is the error to show during a probe.
func (c *Cluster) meanwhile() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.err != nil {
		return c.err
	}

	return ErrProbing
}

// Doubt makes the next Identify ask again: something else failed.
func (c *Cluster) Doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.err == nil {
		c.probed = time.Time{}
	}
}

// ask returns the last answer if it still counts; else it sees to it that a probe
// is under way and returns the channel that its end closes, and the one that is
// closed when it is not waited for any longer.
func (c *Cluster) ask() (ended, waiting <-chan struct{}, found Identity, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	counts := goodFor
	if c.err != nil {
		counts = badFor
	}

	if !c.probed.IsZero() && c.now().Sub(c.probed) < counts {
		return nil, nil, c.found, c.err
	}

	if c.running == nil {
		enough := make(chan struct{})
		time.AfterFunc(c.probeWait, func() { close(enough) })

		c.running, c.waiting = make(chan struct{}), enough
		go c.probe()
	}

	return c.running, c.waiting, Identity{}, nil
}

// probe asks once. It belongs to no caller: many wait for one answer.
func (c *Cluster) probe() {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()

	found, err := c.identify(ctx)

	c.mu.Lock()
	defer c.mu.Unlock()

	// It fell silent during the probe.
	if err == nil && c.unanswered != nil {
		found, err = Identity{}, ErrSilent
	}

	c.found, c.err, c.probed = found, err, c.now()
	close(c.running)
	c.running = nil
}

func (c *Cluster) identify(ctx context.Context) (Identity, error) {
	if _, err := c.get(ctx, "/version"); err != nil {
		return Identity{}, fmt.Errorf("ask for the version: %w", err)
	}

	if err := c.listen(ctx); err != nil {
		return Identity{}, err
	}

	if c.claims.ClusterUUID != "" {
		return Identity{Source: SourceToken, ID: c.claims.ClusterUUID}, nil
	}

	var system struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}

	text, err := c.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem)
	if err == nil {
		err = foreign.Unmarshal(ctx, text, namespaceLimits, &system)
	}

	switch {
	case err == nil && system.Metadata.UID != "":
		return Identity{Source: SourceKubeSystem, ID: system.Metadata.UID}, nil
	case err == nil, apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return Identity{Source: SourceNone}, nil
	default:
		// Also a refusal of the credentials: a cluster that shows its version to
		// anybody has said nothing about them yet.
		return Identity{}, fmt.Errorf("read the namespace kube-system: %w", err)
	}
}

// get asks for something small, as it is.
func (c *Cluster) get(ctx context.Context, path string) ([]byte, error) {
	result := c.core.RESTClient().Get().AbsPath(path).SetHeader("Accept-Encoding", "identity").Do(asProbe(ctx))
	if err := result.Error(); err != nil {
		return nil, err // the callers do
	}

	return result.Raw() // the callers do
}

// close ends the idle connections; requests under way go on.
func (c *Cluster) close() { c.transport.CloseIdleConnections() }
