package omnicluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory keeps a value of each cluster from one run to the next. It is lost with the process. The zero value is ready
// to use. It is safe for concurrent use; the runs of one cluster never overlap.
type memory[T any] struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]T
}

// of returns the value of a cluster; the zero value if there is none.
func (m *memory[T]) of(name types.NamespacedName) T {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.entries[name]
}

// keep replaces the value of a cluster.
func (m *memory[T]) keep(name types.NamespacedName, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.entries == nil {
		m.entries = map[types.NamespacedName]T{}
	}

	m.entries[name] = value
}

// forget removes the value of a cluster.
func (m *memory[T]) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.entries, name)
}
