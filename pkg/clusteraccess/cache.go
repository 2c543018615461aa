package clusteraccess

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// Key names a kubeconfig: a key of a Secret.
type Key struct {
	types.NamespacedName
	// SecretKey is the key in the Secret's data.
	SecretKey string
}

// Clusters keeps one Cluster per kubeconfig. It is safe for concurrent use.
type Clusters struct {
	// Runs is how many reconciles may work in one cluster at the same time, so that a cluster that hangs leaves workers to
	// the others; 0 is no bound. It must not be changed after the first one.
	Runs int
	// SyncRuns and ReleaseRuns are how many reconciles of OmniSecretSyncs and OmniHelmReleases may work in the clusters of one
	// namespace at the same time, so that its clusters, however many hang, leave workers to other namespaces; 0 is no bound.
	// They must not be changed after the first one.
	SyncRuns, ReleaseRuns int
	// Refused is called, with the name of the Secret, for every answer 401 to a request with a kubeconfig. It must not block, and
	// must not be changed after the first one. Nil: nobody is told.
	Refused func(secret types.NamespacedName)

	now             func() time.Time
	guard           dialguard.Guard
	once            sync.Once
	limiter         *limiter.Limiter[types.NamespacedName] // by OmniCluster
	syncs, releases *limiter.Limiter[string]               // by namespace

	mu      sync.Mutex
	entries map[Key]entry
}

// entry is the result of reading a kubeconfig. Only the kubeconfig's hash is kept.
type entry struct {
	hash    [sha256.Size]byte
	cluster *Cluster
	err     error
	used    time.Time
}

// unusedFor is how long an unused kubeconfig is kept. Every object uses its kubeconfig once per interval, which is
// shorter.
const unusedFor = 2 * time.Hour

// NewClusters returns an empty Clusters. The guard decides which addresses its connections may reach. A nil clock is
// time.Now.
func NewClusters(now func() time.Time, guard dialguard.Guard) *Clusters {
	if now == nil {
		now = time.Now
	}

	return &Clusters{now: now, guard: guard, entries: map[Key]entry{}}
}

// Get returns the Cluster of a kubeconfig: the existing one if the content is the same, else a new one; the old one's
// connections are closed. Nothing is sent. Errors: ErrUnsafe and ErrInvalid, and that of ctx if it ends while other
// texts are being read.
func (c *Clusters) Get(ctx context.Context, key Key, kubeconfig []byte) (*Cluster, error) {
	hash := sha256.Sum256(kubeconfig)

	if known, found := c.known(key, hash); found {
		return known.cluster, known.err
	}

	// Without the lock: newCluster may have to wait until others have read theirs.
	cluster, err := newCluster(ctx, kubeconfig, c.now, c.guard)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}

	if cluster != nil {
		cluster.digest = hex.EncodeToString(hash[:])

		if c.Refused != nil {
			cluster.onRefusal = func() { c.Refused(key.NamespacedName) }
		}
	}

	kept := c.keep(key, entry{hash: hash, cluster: cluster, err: err})

	return kept.cluster, kept.err
}

// known returns the entry of a kubeconfig with this content.
func (c *Clusters) known(key Key, hash [sha256.Size]byte) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	known, found := c.entries[key]
	if !found || known.hash != hash {
		return entry{}, false
	}

	known.used = c.now()
	c.entries[key] = known

	return known, true
}

// keep replaces the entry of a kubeconfig, and returns the entry to use: another worker may have read the same
// kubeconfig meanwhile.
func (c *Clusters) keep(key Key, read entry) entry {
	c.mu.Lock()
	defer c.mu.Unlock()

	if before, found := c.entries[key]; found && before.hash == read.hash {
		return before // nothing was sent over the new one's connections
	}

	// With the unused ones: the last object that used a kubeconfig does not sign off.
	c.drop(func(other Key, known entry) bool { return other == key || c.now().Sub(known.used) >= unusedFor })

	read.used = c.now()
	c.entries[key] = read

	return read
}

// drop closes and drops clusters. The caller holds the lock.
func (c *Clusters) drop(which func(Key, entry) bool) {
	maps.DeleteFunc(c.entries, func(key Key, known entry) bool {
		dropped := which(key, known)
		if dropped && known.cluster != nil {
			known.cluster.close()
		}

		return dropped
	})
}

// Forget closes and drops every Cluster of a deleted Secret.
func (c *Clusters) Forget(secret types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.drop(func(key Key, _ entry) bool { return key.NamespacedName == secret })
}

const (
	// firstRetry and longestRetry bound when to retry with a cluster that does not answer.
	firstRetry   = 15 * time.Second
	longestRetry = 2 * time.Minute
	// retryPart is the part of its outage after which a cluster is tried again: what has failed for long is asked rarely,
	// and what comes back is used before the outage is a tenth longer.
	retryPart = 10
)

// record stores the result of a probe, or of a request that timed out, and returns who waited for the cluster to answer.
// The caller holds the lock, and calls them without it.
func (c *Cluster) record(found Identity, err error) (waited map[string]func()) {
	c.found, c.err, c.probed = found, err, c.now()

	switch {
	case err == nil:
		waited, c.waiting, c.failing = c.waiting, nil, time.Time{}
	case c.failing.IsZero():
		c.failing = c.probed
	}

	return waited
}

// retryAfter returns after which time a requester tries again, and wakes it earlier if the cluster answers another
// requester until then.
func (c *Cluster) retryAfter(requester string, wake func()) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.err == nil {
		return firstRetry
	}

	if c.waiting == nil {
		c.waiting = map[string]func(){}
	}

	c.waiting[requester] = wake

	return min(max(c.now().Sub(c.failing)/retryPart, firstRetry), longestRetry)
}
