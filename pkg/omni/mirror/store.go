package mirror

import (
	"maps"
	"slices"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// store is the mirror's memory: one table per resource type, indexed by ID and
// by cluster label, with resources that nobody may change. It is safe for
// concurrent use.
type store struct {
	mu     sync.RWMutex
	tables map[resource.Type]*table

	awaited map[string][]omni.ResourceKey            // by cluster, what it waits for that another one has
	waiting map[omni.ResourceKey]map[string]struct{} // the same by resource
}

type table struct {
	kind         mirroredKind
	bootstrapped bool // complete at least once
	live         bool // the watch runs now
	byID         map[resource.ID]item
	byCluster    map[string]map[resource.ID]resource.Resource
}

// item is a resource and its weight, in bytes. The zero item is none.
type item struct {
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
			byID:      map[resource.ID]item{},
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

// get returns the stored resource itself, or nil: do not change it.
func (s *store) get(resourceType resource.Type, id resource.ID) resource.Resource {
	s.mu.RLock()
	defer s.mu.RUnlock()

	if t := s.tables[resourceType]; t != nil {
		return t.byID[id].Resource
	}

	return nil
}

// list returns the stored resources of a cluster, or all of them if cluster
// is nil, in no order: do not change them.
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

// has reports whether the type is mirrored at all.
func (s *store) has(resourceType resource.Type) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.tables[resourceType] != nil
}

// find returns what is stored under the same type and ID; the zero item if nothing is.
func (s *store) find(like resource.Pointer) item {
	s.mu.RLock()
	defer s.mu.RUnlock()

	if t := s.tables[like.Type()]; t != nil {
		return t.byID[like.ID()]
	}

	return item{}
}

// put stores a resource, and returns the clusters it concerns: the one it
// belonged to and the one it belongs to. What it replaces is dropped.
func (s *store) put(added item) (touched []string, dropped item) {
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

// remove removes a resource that was destroyed, and returns the clusters it concerned.
func (s *store) remove(gone resource.Pointer) (touched []string, dropped item) {
	s.mu.Lock()
	defer s.mu.Unlock()

	t := s.tables[gone.Type()]
	if t == nil || t.byID[gone.ID()].Resource == nil {
		return nil, item{}
	}

	old := t.byID[gone.ID()]
	touched = append(touched, s.clusterOf(t, old))
	t.remove(old)

	return distinct(append(touched, s.waitingFor(old)...)), old
}

// replace makes a table's content equal to a fresh snapshot and returns the
// clusters for which anything differs. What is there in the same revision is in
// the snapshot as the very same resource, see reader.
func (s *store) replace(resourceType resource.Type, snapshot map[resource.ID]item) (touched []string, dropped []item) {
	s.mu.Lock()
	defer s.mu.Unlock()

	t := s.tables[resourceType]

	for id, old := range t.byID {
		if snapshot[id].Resource != old.Resource {
			touched, dropped = append(touched, s.clusterOf(t, old)), append(dropped, old)
			touched = append(touched, s.waitingFor(old)...)
			t.remove(old)
		}
	}

	for id, added := range snapshot {
		if t.byID[id].Resource == nil {
			t.add(added)
			touched = append(touched, s.clusterOf(t, added))
			touched = append(touched, s.waitingFor(added)...)
		}
	}

	t.bootstrapped, t.live = true, true

	return distinct(touched), dropped
}

// clear forgets everything, as if nothing had ever been read.
func (s *store) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, t := range s.tables {
		t.bootstrapped, t.live = false, false
		clear(t.byID)
		clear(t.byCluster)
	}
}

// lost notes that a table's watch ended. Its content stays readable.
func (s *store) lost(resourceType resource.Type) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.tables[resourceType].live = false
}
