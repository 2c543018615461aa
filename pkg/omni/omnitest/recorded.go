package omnitest

import "sync"

// Recorded notes what callbacks tell.
type Recorded struct {
	mu       sync.Mutex
	clusters []string
	health   int
}

// Take returns what was told since the last call, and forgets it.
func (r *Recorded) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	taken := r.clusters
	r.clusters = nil

	return taken
}

// HealthChanges is how often HealthChanged was called.
func (r *Recorded) HealthChanges() int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.health
}

// Told reports whether a cluster was told of.
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

// ClusterChanged is for the option of the same name.
func (r *Recorded) ClusterChanged(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.clusters = append(r.clusters, cluster)
}

// HealthChanged is for the option of the same name.
func (r *Recorded) HealthChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.health++
}
