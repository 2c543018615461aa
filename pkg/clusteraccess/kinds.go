package clusteraccess

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxKinds bounds a set: charts choose the kinds, and a hostile cluster accepts all of them. An API server has some
// hundreds.
const maxKinds = 1000

// Kinds is a set of kinds of a workload cluster's API. It is safe for concurrent use. It holds at most 1,000 kinds.
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

// Add adds a kind to the set.
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

// ValidatedKinds returns the kinds whose fields the cluster's API server is known to validate. The set is dropped with
// the cluster's kubeconfig.
func (c *Cluster) ValidatedKinds() *Kinds { return &c.validated }
