package omnicluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory keeps what the last run of each cluster left for its next one. It lives in the
// process: a restart begins with nothing. The zero value is ready to use, and it is safe
// for concurrent use; the runs of one cluster are one after the other.
type memory[T any] struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]T
}

// of is what is kept of a cluster; the zero value if nothing is.
func (m *memory[T]) of(name types.NamespacedName) T {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.entries[name]
}

// keep replaces what is kept of a cluster.
func (m *memory[T]) keep(name types.NamespacedName, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.entries == nil {
		m.entries = map[types.NamespacedName]T{}
	}

	m.entries[name] = value
}

// forget drops a cluster.
func (m *memory[T]) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.entries, name)
}
