package omni

import (
	"slices"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// await notes which resources a cluster waits for that belong to another one:
// every change of them concerns it, too, whether or not Omni has the cluster
// already. It replaces what was noted before; without keys nothing is waited for.
// It tells whether there are keys that were not noted before: their change may
// have been missed.
func (s *store) await(cluster string, keys []resourceKey) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	before := s.awaited[cluster]

	for _, key := range before {
		delete(s.waiting[key], cluster)

		if len(s.waiting[key]) == 0 {
			delete(s.waiting, key)
		}
	}

	delete(s.awaited, cluster)

	for _, key := range keys {
		if s.waiting[key] == nil {
			s.waiting[key] = map[string]struct{}{}
		}

		s.waiting[key][cluster] = struct{}{}
		s.awaited[cluster] = append(s.awaited[cluster], key)
		added = added || !slices.Contains(before, key)
	}

	return added
}

// waitingFor names the clusters that wait for a resource. The caller holds the lock.
func (s *store) waitingFor(changed item) []string {
	clusters := make([]string, 0, len(s.waiting[keyOf(changed)]))
	for cluster := range s.waiting[keyOf(changed)] {
		clusters = append(clusters, cluster)
	}

	return clusters
}

// awaitedBy are the resources that collisions are about, and the clusters that
// have them: what is to be watched to know that an error is over, or says
// something else.
func awaitedBy(err error) []resourceKey {
	var keys []resourceKey

	for _, collision := range collisionsIn(err) {
		keys = append(keys, resourceKey{collision.Type, collision.ID})

		if collision.Cluster != "" {
			keys = append(keys, resourceKey{omnires.ClusterType, collision.Cluster})
		}
	}

	return keys
}

// collisionsIn finds every collision that an error names.
func collisionsIn(err error) []*CollisionError {
	switch typed := err.(type) { //nolint:errorlint // the tree is walked here
	case *CollisionError:
		return []*CollisionError{typed}
	case interface{ Unwrap() []error }:
		var found []*CollisionError
		for _, inner := range typed.Unwrap() {
			found = append(found, collisionsIn(inner)...)
		}

		return found
	case interface{ Unwrap() error }:
		return collisionsIn(typed.Unwrap())
	default:
		return nil
	}
}
