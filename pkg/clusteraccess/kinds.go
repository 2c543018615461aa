package clusteraccess

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxKinds bounds a set: charts name the kinds, and a hostile cluster agrees to all. An API server has some hundreds.
const maxKinds = 1000

// Kinds is a set of kinds of a workload cluster's API. It is safe for concurrent use. Beyond 1,000 kinds it takes no more.
type Kinds struct {
	mu    sync.RWMutex
	kinds sets.Set[schema.GroupVersionKind]
}

// Has reports whether a kind is in the set.
func (k *Kinds) Has(kind schema.GroupVersionKind) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()

	return k.kinds.Has(kind)
}

// Add puts a kind into the set.
func (k *Kinds) Add(kind schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.kinds == nil {
		k.kinds = sets.New[schema.GroupVersionKind]()
	}

	if len(k.kinds) < maxKinds {
		k.kinds.Insert(kind)
	}
}

// ValidatedKinds are the kinds whose fields the cluster's API server is known to validate. They are forgotten with the
// cluster's kubeconfig.
func (c *Cluster) ValidatedKinds() *Kinds { return &c.validated }
