package omni

import "sync"

// recorded notes what callbacks tell.
type recorded struct {
	mu       sync.Mutex
	clusters []string
	health   int
}

// take returns what was told since the last call, and forgets it.
func (r *recorded) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	taken := r.clusters
	r.clusters = nil

	return taken
}

// healthChanges is how often HealthChanged was called.
func (r *recorded) healthChanges() int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.health
}

func (r *recorded) told(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, name := range r.clusters {
		if name == cluster {
			return true
		}
	}

	return false
}

// ClusterChanged is for the option of the same name.
func (r *recorded) ClusterChanged(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.clusters = append(r.clusters, cluster)
}

// HealthChanged is for the option of the same name.
func (r *recorded) HealthChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.health++
}
