package omnisim

import (
	"context"
	"slices"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// indexedLabels are those by which the engine and the rules list resources.
func indexedLabels() []string { return []string{omni.LabelCluster, omni.LabelMachineSet} }

// indexedState finds resources by label without a look at each one of the type: with a thousand clusters, a state in memory
// spends seconds on that for each step of the engine.
type indexedState struct {
	state.CoreState

	mu   sync.RWMutex
	ids  map[indexKey]map[resource.ID]struct{}
	keys map[resourceName][]indexKey // under which a resource is found
}

type indexKey struct {
	kind         resource.Type
	label, value string
}

type resourceName struct {
	kind resource.Type
	id   resource.ID
}

// newIndexedState adds the index to an empty state of one namespace.
func newIndexedState(st state.CoreState) *indexedState {
	return &indexedState{CoreState: st, ids: map[indexKey]map[resource.ID]struct{}{}, keys: map[resourceName][]indexKey{}}
}

// Create implements state.CoreState.
func (s *indexedState) Create(ctx context.Context, res resource.Resource, options ...state.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	err := s.CoreState.Create(ctx, res, options...)
	if err == nil {
		s.put(res.Metadata())
	}

	return err
}

// Update implements state.CoreState.
func (s *indexedState) Update(ctx context.Context, res resource.Resource, options ...state.UpdateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	err := s.CoreState.Update(ctx, res, options...)
	if err == nil {
		s.put(res.Metadata())
	}

	return err
}

// Destroy implements state.CoreState.
func (s *indexedState) Destroy(ctx context.Context, pointer resource.Pointer, options ...state.DestroyOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	err := s.CoreState.Destroy(ctx, pointer, options...)
	if err == nil {
		s.remove(resourceName{pointer.Type(), pointer.ID()})
	}

	return err
}

// List implements state.CoreState.
func (s *indexedState) List(ctx context.Context, kind resource.Kind, options ...state.ListOption) (resource.List, error) {
	var wanted state.ListOptions
	for _, option := range options {
		option(&wanted)
	}

	key, indexed := indexOf(kind.Type(), wanted.LabelQueries)
	if !indexed {
		return s.CoreState.List(ctx, kind, options...)
	}

	var found resource.List

	for _, id := range s.find(key) {
		res, err := s.Get(ctx, resource.NewMetadata(kind.Namespace(), kind.Type(), id, resource.VersionUndefined))
		if state.IsNotFoundError(err) {
			continue // destroyed meanwhile
		}

		if err != nil {
			return resource.List{}, err
		}

		if wanted.IDQuery.Matches(*res.Metadata()) && wanted.LabelQueries.Matches(*res.Metadata().Labels()) {
			found.Items = append(found.Items, res)
		}
	}

	return found, nil
}

// indexOf returns where the resources of a query are found, if all of them are at one place.
func indexOf(kind resource.Type, queries resource.LabelQueries) (indexKey, bool) {
	if len(queries) != 1 {
		return indexKey{}, false
	}

	for _, term := range queries[0].Terms {
		if term.Op == resource.LabelOpEqual && !term.Invert && slices.Contains(indexedLabels(), term.Key) {
			return indexKey{kind, term.Key, term.Value[0]}, true
		}
	}

	return indexKey{}, false
}

// find returns IDs in order.
func (s *indexedState) find(key indexKey) []resource.ID {
	s.mu.RLock()
	defer s.mu.RUnlock()

	ids := make([]resource.ID, 0, len(s.ids[key]))
	for id := range s.ids[key] {
		ids = append(ids, id)
	}

	slices.Sort(ids)

	return ids
}

func (s *indexedState) put(md *resource.Metadata) {
	name := resourceName{md.Type(), md.ID()}
	s.remove(name)

	for _, label := range indexedLabels() {
		value, set := md.Labels().Get(label)
		if !set {
			continue
		}

		key := indexKey{md.Type(), label, value}
		if s.ids[key] == nil {
			s.ids[key] = map[resource.ID]struct{}{}
		}

		s.ids[key][md.ID()] = struct{}{}
		s.keys[name] = append(s.keys[name], key)
	}
}

func (s *indexedState) remove(name resourceName) {
	for _, key := range s.keys[name] {
		delete(s.ids[key], name.id)

		if len(s.ids[key]) == 0 {
			delete(s.ids, key)
		}
	}

	delete(s.keys, name)
}
