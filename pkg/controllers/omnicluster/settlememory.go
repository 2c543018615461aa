package omnicluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
)

// settleMemory keeps the settling of every cluster. It lives in the process: a
// restart starts every settle time again.
type settleMemory struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]consent.Settling
}

func newSettleMemory() *settleMemory {
	return &settleMemory{entries: map[types.NamespacedName]consent.Settling{}}
}

// of is what the last run found.
func (m *settleMemory) of(name types.NamespacedName) consent.Settling {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.entries[name]
}

// keep takes over what a run found.
func (m *settleMemory) keep(name types.NamespacedName, settling consent.Settling) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if settling.Empty() {
		delete(m.entries, name)
	} else {
		m.entries[name] = settling
	}
}

// forget drops a cluster.
func (m *settleMemory) forget(name types.NamespacedName) { m.keep(name, consent.Settling{}) }
