package workload

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// Key names a kubeconfig: a key of a Secret.
type Key struct {
	types.NamespacedName
	// SecretKey is the key in the Secret's data.
	SecretKey string
}

// Clusters keeps one Cluster per kubeconfig. It is safe for concurrent use.
type Clusters struct {
	// Runs is how many runs may work in one cluster at the same time, so that one that hangs leaves workers to the
	// others; 0 is no bound. It must not be changed after the first run.
	Runs int

	now   func() time.Time
	guard dialguard.Guard
	seats seating

	mu      sync.Mutex
	entries map[Key]entry
}

// entry is a kubeconfig that was read. Only its hash is kept.
type entry struct {
	hash    [sha256.Size]byte
	cluster *Cluster
	err     error
	used    time.Time
}

// unusedFor is how long a kubeconfig is kept that nobody asks for. Every object
// asks at its interval, which is shorter.
const unusedFor = 2 * time.Hour

// NewClusters makes an empty Clusters, whose connections the guard decides about. A
// nil clock is the time of day.
func NewClusters(now func() time.Time, guard dialguard.Guard) *Clusters {
	if now == nil {
		now = time.Now
	}

	return &Clusters{now: now, guard: guard, entries: map[Key]entry{}}
}

// Get returns the Cluster of a kubeconfig: the one from before if the content is
// the same, else a new one, and the old one's connections are closed. Nothing is
// sent. Its errors are ErrUnsafe and ErrInvalid.
func (c *Clusters) Get(key Key, kubeconfig []byte) (*Cluster, error) {
	hash := sha256.Sum256(kubeconfig)

	c.mu.Lock()
	defer c.mu.Unlock()

	known, found := c.entries[key]
	if found && known.hash == hash {
		known.used = c.now()
		c.entries[key] = known

		return known.cluster, known.err
	}

	if known.cluster != nil {
		known.cluster.close()
	}

	cluster, err := newCluster(kubeconfig, c.now, c.guard)
	c.entries[key] = entry{hash: hash, cluster: cluster, err: err, used: c.now()}
	c.drop()

	return cluster, err
}

// drop closes what nobody asks for any more: the last object that used a
// kubeconfig does not say goodbye. The caller holds the lock.
func (c *Clusters) drop() {
	for key, known := range c.entries {
		if c.now().Sub(known.used) < unusedFor {
			continue
		}

		if known.cluster != nil {
			known.cluster.close()
		}

		delete(c.entries, key)
	}
}

// Forget closes and drops every Cluster of a Secret that is gone.
func (c *Clusters) Forget(secret types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for key, known := range c.entries {
		if key.NamespacedName != secret {
			continue
		}

		if known.cluster != nil {
			known.cluster.close()
		}

		delete(c.entries, key)
	}
}
