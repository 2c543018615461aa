package mirror

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// await implements Mirror.Await.
func (s *store) await(cluster string, keys []omni.ResourceKey) (added bool) {
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

// waitingFor returns the clusters that wait for a resource. The caller holds the lock.
func (s *store) waitingFor(changed stored) []string {
	clusters := make([]string, 0, len(s.waiting[omni.KeyOf(changed)]))
	for cluster := range s.waiting[omni.KeyOf(changed)] {
		clusters = append(clusters, cluster)
	}

	return clusters
}
