package omni

import (
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// store is the mirror's memory: one table per resource type, indexed by ID and
// by cluster label, with resources that nobody may change. It is safe for
// concurrent use.
type store struct {
	mu     sync.RWMutex
	tables map[resource.Type]*table
}

type table struct {
	kind         mirroredKind
	bootstrapped bool // complete at least once
	live         bool // the watch runs now
	byID         map[resource.ID]resource.Resource
	byCluster    map[string]map[resource.ID]resource.Resource
}

func newStore(kinds []mirroredKind) *store {
	s := &store{tables: make(map[resource.Type]*table, len(kinds))}

	for _, kind := range kinds {
		s.tables[kind.resourceType] = &table{
			kind:      kind,
			byID:      map[resource.ID]resource.Resource{},
			byCluster: map[string]map[resource.ID]resource.Resource{},
		}
	}

	return s
}

// complete tells whether every table was filled at least once.
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
		return t.byID[id]
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

	from := t.byID
	if cluster != nil {
		from = t.byCluster[*cluster]
	}

	items := make([]resource.Resource, 0, len(from))
	for _, item := range from {
		items = append(items, item)
	}

	return items
}

// has tells whether the type is mirrored at all.
func (s *store) has(resourceType resource.Type) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.tables[resourceType] != nil
}

// put stores one event's resource, or removes it, and returns the clusters it
// concerns: the one it belonged to and the one it belongs to.
func (s *store) put(item resource.Resource, gone bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	t := s.tables[item.Metadata().Type()]
	if t == nil {
		return nil
	}

	old := t.byID[item.Metadata().ID()]
	if !gone && old != nil && sameRevision(old, item) {
		return nil
	}

	if gone && old == nil {
		return nil
	}

	var touched []string

	if old != nil {
		touched = append(touched, s.clusterOf(t, old))
		t.remove(old)
	}

	if !gone {
		t.add(item)
		touched = append(touched, s.clusterOf(t, item))
	}

	return distinct(touched)
}

// replace makes a table's content equal to a fresh snapshot and returns the
// clusters for which anything differs.
func (s *store) replace(resourceType resource.Type, snapshot map[resource.ID]resource.Resource) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	t := s.tables[resourceType]

	var touched []string

	for id, old := range t.byID {
		if _, still := snapshot[id]; !still {
			touched = append(touched, s.clusterOf(t, old))
			t.remove(old)
		}
	}

	for id, item := range snapshot {
		old := t.byID[id]
		if old != nil && sameRevision(old, item) {
			continue
		}

		if old != nil {
			touched = append(touched, s.clusterOf(t, old))
			t.remove(old)
		}

		t.add(item)
		touched = append(touched, s.clusterOf(t, item))
	}

	t.bootstrapped, t.live = true, true

	return distinct(touched)
}

// lost notes that a table's watch ended. Its content stays readable.
func (s *store) lost(resourceType resource.Type) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.tables[resourceType].live = false
}

func (t *table) add(item resource.Resource) {
	id := item.Metadata().ID()
	t.byID[id] = item

	cluster, labelled := item.Metadata().Labels().Get(omnires.LabelCluster)
	if !labelled {
		return
	}

	if t.byCluster[cluster] == nil {
		t.byCluster[cluster] = map[resource.ID]resource.Resource{}
	}

	t.byCluster[cluster][id] = item
}

func (t *table) remove(item resource.Resource) {
	id := item.Metadata().ID()
	delete(t.byID, id)

	cluster, labelled := item.Metadata().Labels().Get(omnires.LabelCluster)
	if !labelled {
		return
	}

	delete(t.byCluster[cluster], id)

	if len(t.byCluster[cluster]) == 0 {
		delete(t.byCluster, cluster)
	}
}

// clusterOf names the cluster that a change of the resource concerns, or "".
// The caller holds the lock.
func (s *store) clusterOf(t *table, item resource.Resource) string {
	if t.kind.scope == scopeID {
		return item.Metadata().ID()
	}

	if cluster, labelled := item.Metadata().Labels().Get(omnires.LabelCluster); labelled {
		return cluster
	}

	if t.kind.scope != scopeMachine {
		return ""
	}

	if machine, ok := item.(*omnires.MachineStatus); ok {
		return machine.TypedSpec().Value.GetCluster()
	}

	// Kernel arguments carry only the machine's ID.
	for _, kind := range []resource.Type{omnires.MachineSetNodeType, omnires.MachineStatusType} {
		related := s.tables[kind]
		if related == nil {
			continue
		}

		if node := related.byID[item.Metadata().ID()]; node != nil {
			if cluster := s.clusterOf(related, node); cluster != "" {
				return cluster
			}
		}
	}

	return ""
}

// sameRevision compares what Omni changes with every write. A resource that
// was destroyed and made again starts at version 1, so the time it was created
// counts, too.
func sameRevision(a, b resource.Resource) bool {
	return a.Metadata().Version().Equal(b.Metadata().Version()) &&
		a.Metadata().Created().Equal(b.Metadata().Created()) &&
		a.Metadata().Updated().Equal(b.Metadata().Updated()) &&
		a.Metadata().Phase() == b.Metadata().Phase()
}

// distinct drops empty and repeated names and keeps the order.
func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	kept := names[:0]

	for _, name := range names {
		if name != "" && !seen[name] {
			seen[name] = true
			kept = append(kept, name)
		}
	}

	return kept
}
