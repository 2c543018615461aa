package mirror

import (
	"maps"
	"slices"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// store holds the mirror's resources: one table per resource type, indexed by ID and by cluster label. The resources
// are immutable. It is safe for concurrent use.
type store struct {
	mu     sync.RWMutex
	tables map[resource.Type]*table

	awaited map[string][]omni.ResourceKey            // by cluster: resources of other clusters that it waits for
	waiting map[omni.ResourceKey]map[string]struct{} // the same, by resource
}

type table struct {
	kind         mirroredKind
	bootstrapped bool // complete at least once
	watching     bool // the watch runs now
	byID         map[resource.ID]stored
	byCluster    map[string]map[resource.ID]resource.Resource
}

// stored is a resource and its weight, in bytes. The zero value holds no resource.
type stored struct {
	resource.Resource

	weight int64
}

func newStore(kinds []mirroredKind) *store {
	s := &store{
		tables:  make(map[resource.Type]*table, len(kinds)),
		awaited: map[string][]omni.ResourceKey{}, waiting: map[omni.ResourceKey]map[string]struct{}{},
	}

	for _, kind := range kinds {
		s.tables[kind.resourceType] = &table{
			kind:      kind,
			byID:      map[resource.ID]stored{},
			byCluster: map[string]map[resource.ID]resource.Resource{},
		}
	}

	return s
}

// complete reports whether every table was filled at least once.
func (s *store) complete() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()

	for _, t := range s.tables {
		if !t.bootstrapped {
			return false
		}
	}

	return true
}

// get returns the stored resource itself, or nil. Do not change it.
func (s *store) get(resourceType resource.Type, id resource.ID) resource.Resource {
	s.mu.RLock()
	defer s.mu.RUnlock()

	if t := s.tables[resourceType]; t != nil {
		return t.byID[id].Resource
	}

	return nil
}

// list returns the stored resources of a cluster, or all of them if cluster is nil, in no order. Do not change them.
func (s *store) list(resourceType resource.Type, cluster *string) []resource.Resource {
	s.mu.RLock()
	defer s.mu.RUnlock()

	t := s.tables[resourceType]
	if t == nil {
		return nil
	}

	if cluster != nil {
		return slices.AppendSeq(make([]resource.Resource, 0, len(t.byCluster[*cluster])), maps.Values(t.byCluster[*cluster]))
	}

	items := make([]resource.Resource, 0, len(t.byID))
	for _, kept := range t.byID {
		items = append(items, kept.Resource)
	}

	return items
}

// has reports whether the type is mirrored.
func (s *store) has(resourceType resource.Type) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.tables[resourceType] != nil
}

// find returns the resource that is stored under the same type and ID; the zero value if there is none.
func (s *store) find(like resource.Pointer) stored {
	s.mu.RLock()
	defer s.mu.RUnlock()

	if t := s.tables[like.Type()]; t != nil {
		return t.byID[like.ID()]
	}

	return stored{}
}

// put stores a resource, and returns the clusters it concerns: the one it belonged to, the one it belongs to, and those
// that wait for it. dropped is the resource that it replaces, or the added one if the store keeps what it has.
func (s *store) put(added stored) (touched []string, dropped stored) {
	s.mu.Lock()
	defer s.mu.Unlock()

	t := s.tables[added.Metadata().Type()]
	if t == nil {
		return nil, added
	}

	old := t.byID[added.Metadata().ID()]
	if old.Resource != nil && sameRevision(old, added) {
		return nil, added
	}

	if old.Resource != nil {
		touched = append(touched, s.clusterOf(t, old))
		t.remove(old)
	}

	t.add(added)
	touched = append(touched, s.clusterOf(t, added))

	return distinct(append(touched, s.waitingFor(added)...)), old
}

// remove removes a destroyed resource, and returns the clusters it concerned.
func (s *store) remove(gone resource.Pointer) (touched []string, dropped stored) {
	s.mu.Lock()
	defer s.mu.Unlock()

	t := s.tables[gone.Type()]
	if t == nil || t.byID[gone.ID()].Resource == nil {
		return nil, stored{}
	}

	old := t.byID[gone.ID()]
	touched = append(touched, s.clusterOf(t, old))
	t.remove(old)

	return distinct(append(touched, s.waitingFor(old)...)), old
}

// replace makes a table's content equal to fresh contents and returns the clusters for which anything differs. A
// resource that the table has in the same revision is the very same object in the contents: see watchReader.take.
func (s *store) replace(resourceType resource.Type, contents map[resource.ID]stored) (touched []string, dropped []stored) {
	s.mu.Lock()
	defer s.mu.Unlock()

	t := s.tables[resourceType]

	for id, old := range t.byID {
		if contents[id].Resource != old.Resource {
			touched, dropped = append(touched, s.clusterOf(t, old)), append(dropped, old)
			touched = append(touched, s.waitingFor(old)...)
			t.remove(old)
		}
	}

	for id, added := range contents {
		if t.byID[id].Resource == nil {
			t.add(added)
			touched = append(touched, s.clusterOf(t, added))
			touched = append(touched, s.waitingFor(added)...)
		}
	}

	t.bootstrapped, t.watching = true, true

	return distinct(touched), dropped
}

// clear drops everything, as if nothing had ever been read.
func (s *store) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, t := range s.tables {
		t.bootstrapped, t.watching = false, false
		clear(t.byID)
		clear(t.byCluster)
	}
}

// lost records that a table's watch ended. Its content stays readable.
func (s *store) lost(resourceType resource.Type) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.tables[resourceType].watching = false
}
