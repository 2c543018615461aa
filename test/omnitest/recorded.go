package omnitest

import "sync"

// Recorded records the calls of a mirror's callbacks.
type Recorded struct {
	mu       sync.Mutex
	clusters []string
	health   int
}

// Take returns the clusters reported since the last call, and clears them.
func (r *Recorded) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	taken := r.clusters
	r.clusters = nil

	return taken
}

// HealthChanges returns how often HealthChanged was called.
func (r *Recorded) HealthChanges() int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.health
}

// Told reports whether ClusterChanged was called for a cluster.
func (r *Recorded) Told(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, name := range r.clusters {
		if name == cluster {
			return true
		}
	}

	return false
}

// ClusterChanged implements the option of the same name.
func (r *Recorded) ClusterChanged(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.clusters = append(r.clusters, cluster)
}

// HealthChanged implements the option of the same name.
func (r *Recorded) HealthChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.health++
}
