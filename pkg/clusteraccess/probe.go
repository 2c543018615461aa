package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

const (
	// probeTimeout bounds one probe, besides the repeat of a request that timed out.
	probeTimeout = 15 * time.Second
	// probeWait is how long callers wait for a probe, from its start. So a dead cluster costs each worker this time once
	// per probe, however many objects it has.
	probeWait = time.Second
	// failedProbeWait is the same for a cluster whose last probe failed: when hundreds of clusters fail together, the workers
	// are for the others. A cluster that works again usually answers within it.
	failedProbeWait = 100 * time.Millisecond
	// goodFor and badFor are how long a success and a failure of a probe count.
	goodFor = time.Minute
	badFor  = 15 * time.Second
)

// namespaceLimits bound the namespace kube-system, of which only the UID is kept.
//
//nolint:gochecknoglobals // a constant
var namespaceLimits = foreign.Limits{Bytes: 512 << 10, Depth: 64, Nodes: 20_000, Expanded: 512 << 10}

// ErrProbing means that the cluster has not answered yet: retry in a moment.
var ErrProbing = errors.New("the workload cluster is being asked")

// errNoUID is not the absence of an identity: a cluster without one may be used.
var errNoUID = errors.New("what the namespace kube-system has as its UID is none: no Kubernetes answers so")

// Identify returns the identity of the cluster if it answers. The result is kept for a while, so that a thousand
// objects on one cluster cost one request a minute, and a dead cluster one attempt at a time. While a failed cluster is
// probed again, Identify returns the old failure. Errors: ErrProbing if there is no result yet, or those of the
// request.
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

// meanwhile returns the error to show during a probe.
func (c *Cluster) meanwhile() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.err != nil {
		return c.err
	}

	return ErrProbing
}

// Invalidate makes the next Identify probe again, because another request failed. A failure stands.
func (c *Cluster) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.err == nil {
		c.probed = time.Time{}
	}
}

// ask returns the last result if it still counts; else it starts a probe if none runs, and returns the channel that is
// closed at the end of the probe, and the one that is closed when callers stop waiting for it.
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

	if c.probeEnded == nil {
		enough, after := make(chan struct{}), c.probeWait
		if c.err != nil {
			after = min(after, failedProbeWait)
		}

		time.AfterFunc(after, func() { close(enough) })

		c.probeEnded, c.waitOver = make(chan struct{}), enough
		go c.probe()
	}

	return c.probeEnded, c.waitOver, Identity{}, nil
}

// probe runs one probe. It uses no caller's context: many callers wait for one result.
func (c *Cluster) probe() {
	_, repeat := c.timedOut()

	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout+repeat)
	defer cancel()

	for _, wake := range c.endProbe(c.identify(ctx)) {
		wake()
	}
}

// endProbe stores the result of the probe, and returns who waited for the cluster to answer.
func (c *Cluster) endProbe(found Identity, err error) map[string]func() {
	c.mu.Lock()
	defer c.mu.Unlock()

	// The cluster fell silent during the probe.
	if err == nil && c.askAgain != nil {
		found, err = Identity{}, ErrSilent
	}

	waited := c.record(found, err)

	close(c.probeEnded)
	c.probeEnded = nil

	return waited
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
	case err == nil && usable(system.Metadata.UID):
		return Identity{Source: SourceKubeSystem, ID: system.Metadata.UID}, nil
	case err == nil && system.Metadata.UID != "":
		return Identity{}, errNoUID
	case err == nil, apierrors.IsForbidden(err), NotFound(err):
		return Identity{Source: SourceNone}, nil
	default:
		// This includes a refusal of the credentials: a cluster that shows its version to everybody has not checked them
		// before.
		return Identity{}, fmt.Errorf("read the namespace kube-system: %w", err)
	}
}

// get reads a small answer, uncompressed.
func (c *Cluster) get(ctx context.Context, path string) ([]byte, error) {
	result := c.core.RESTClient().Get().AbsPath(path).SetHeader("Accept-Encoding", "identity").Do(asProbe(ctx))
	if err := result.Error(); err != nil {
		return nil, err
	}

	return result.Raw()
}

// readTimeout is how long a worker waits for one read from a cluster.
const readTimeout = 10 * time.Second

// writeFactor is how many times as long as a read a write may take: an admission webhook may take 30 s.
const writeFactor = 3

// ErrSilent means that a cluster answers, but did not finish a read or a write in time.
var ErrSilent = errors.New("the workload cluster answers, but what it is asked to read or write does not end in time: " +
	"its etcd may have lost its quorum, or be overloaded, or an admission webhook there hangs")

// Read runs a read from a cluster, within readTimeout. A cluster that shows its version may hang on every access to its
// storage. The first worker that times out spares the others: until the probe has repeated the same read with success,
// Identify returns ErrSilent. The Cluster may be nil.
func Read[T any](ctx context.Context, cluster *Cluster, read func(context.Context) (T, error)) (T, error) {
	return within(ctx, 1, cluster, read, func(ctx context.Context) { _, _ = read(ctx) })
}

// Write is Read for a write, within three times as long. The probe must not write concurrently with the workers: it
// calls rehearse, which must change nothing.
func Write[T any](ctx context.Context, cluster *Cluster, write func(context.Context) (T, error), rehearse func(context.Context)) (T, error) {
	return within(ctx, writeFactor, cluster, write, rehearse)
}

// within runs do within a number of readTimeouts. If do times out, the cluster is marked as silent until again ends within the
// same time.
func within[T any](ctx context.Context, factor int, cluster *Cluster, do func(context.Context) (T, error), again func(context.Context)) (T, error) {
	limit := readTimeout
	if cluster != nil {
		limit = cluster.readTimeout
	}

	limited, cancel := context.WithTimeout(ctx, time.Duration(factor)*limit)
	defer cancel()

	found, err := do(limited)
	if err != nil && cluster != nil && ctx.Err() == nil && limited.Err() != nil {
		cluster.fallSilent(unanswered{repeat: again, factor: factor})
	}

	return found, err
}

// unanswered is a request that timed out.
type unanswered struct {
	repeat func(context.Context)
	factor int // how many times readTimeout it may take
}

// fallSilent marks the cluster as silent, and stores the request to repeat.
func (c *Cluster) fallSilent(request unanswered) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.askAgain = &request
	c.record(Identity{}, ErrSilent)
}

// timedOut returns the request that timed out, and how long its repeat may take; nil if none did.
func (c *Cluster) timedOut() (*unanswered, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.askAgain == nil {
		return nil, 0
	}

	return c.askAgain, time.Duration(c.askAgain.factor) * c.readTimeout
}

// listen repeats the request that timed out. Any answer is enough.
func (c *Cluster) listen(ctx context.Context) error {
	request, limit := c.timedOut()
	if request == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	if request.repeat(ctx); ctx.Err() != nil {
		return ErrSilent
	}

	c.mu.Lock()
	c.askAgain = nil
	c.mu.Unlock()

	return nil
}
