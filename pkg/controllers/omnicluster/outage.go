package omnicluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// outageMemory knows since when Omni cannot be used for the deletion of each
// cluster. It lives in the process: a restart begins to count again.
type outageMemory struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

func newOutageMemory() *outageMemory {
	return &outageMemory{since: map[types.NamespacedName]time.Time{}}
}

// lasts tells for how long Omni could not be used until now, when it cannot.
func (m *outageMemory) lasts(name types.NamespacedName, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()

	if _, noted := m.since[name]; !noted {
		m.since[name] = now
	}

	return now.Sub(m.since[name])
}

// forget is for a cluster whose Omni can be used, or that is gone.
func (m *outageMemory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.since, name)
}
