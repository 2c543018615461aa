package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// mirrorState presents the store as a read-only COSI state. It returns copies, because callers may change what they
// read from a state.
type mirrorState struct {
	store *store
}

var _ state.CoreState = (*mirrorState)(nil)

// unsupported is an error that state.IsUnsupportedError matches.
type unsupported struct{ error }

// UnsupportedError implements the marker interface.
func (unsupported) UnsupportedError() {}

// Unwrap lets errors.Is find ErrReadOnly.
func (e unsupported) Unwrap() error { return e.error }

func (s *mirrorState) readable(resourceType resource.Type) error {
	if !s.store.has(resourceType) {
		return unsupported{fmt.Errorf("%s is not part of the local copy", resourceType)}
	}

	if !s.store.complete() {
		return omni.ErrNotSynced
	}

	return nil
}

// Get implements state.CoreState.
func (s *mirrorState) Get(_ context.Context, pointer resource.Pointer, _ ...state.GetOption) (resource.Resource, error) {
	if err := s.readable(pointer.Type()); err != nil {
		return nil, err
	}

	item := s.store.get(pointer.Type(), pointer.ID())
	if item == nil || item.Metadata().Namespace() != pointer.Namespace() {
		return nil, omni.NotFoundf("resource %s(%s/%s) doesn't exist", pointer.Type(), pointer.Namespace(), pointer.ID())
	}

	return item.DeepCopy(), nil
}

// List implements state.CoreState: label queries and ID queries work as in COSI, results are sorted by ID. A query for
// one cluster's label reads only that cluster's resources.
func (s *mirrorState) List(_ context.Context, kind resource.Kind, options ...state.ListOption) (resource.List, error) {
	if err := s.readable(kind.Type()); err != nil {
		return resource.List{}, err
	}

	var query state.ListOptions
	for _, option := range options {
		option(&query)
	}

	var found resource.List

	for _, item := range s.store.list(kind.Type(), clusterOfQuery(query.LabelQueries)) {
		if item.Metadata().Namespace() == kind.Namespace() && query.LabelQueries.Matches(*item.Metadata().Labels()) &&
			query.IDQuery.Matches(*item.Metadata()) {
			found.Items = append(found.Items, item.DeepCopy())
		}
	}

	slices.SortFunc(found.Items, func(a, b resource.Resource) int {
		return strings.Compare(a.Metadata().ID(), b.Metadata().ID())
	})

	return found, nil
}

// clusterOfQuery returns the one cluster that a query selects; nil if it may select several.
func clusterOfQuery(queries resource.LabelQueries) *string {
	if len(queries) != 1 { // several queries are alternatives
		return nil
	}

	for _, term := range queries[0].Terms {
		if term.Key == omnires.LabelCluster && term.Op == resource.LabelOpEqual && !term.Invert && len(term.Value) == 1 {
			return &term.Value[0]
		}
	}

	return nil
}

// Create implements state.CoreState; it always fails.
func (s *mirrorState) Create(context.Context, resource.Resource, ...state.CreateOption) error {
	return unsupported{omni.ErrReadOnly}
}

// Update implements state.CoreState; it always fails.
func (s *mirrorState) Update(context.Context, resource.Resource, ...state.UpdateOption) error {
	return unsupported{omni.ErrReadOnly}
}

// Destroy implements state.CoreState; it always fails.
func (s *mirrorState) Destroy(context.Context, resource.Pointer, ...state.DestroyOption) error {
	return unsupported{omni.ErrReadOnly}
}

// Watch implements state.CoreState; it always fails: the mirror reports changes through its callbacks.
func (s *mirrorState) Watch(context.Context, resource.Pointer, chan<- state.Event, ...state.WatchOption) error {
	return unsupported{omni.ErrReadOnly}
}

// WatchKind implements state.CoreState; it always fails.
func (s *mirrorState) WatchKind(context.Context, resource.Kind, chan<- state.Event, ...state.WatchKindOption) error {
	return unsupported{omni.ErrReadOnly}
}

// WatchKindAggregated implements state.CoreState; it always fails.
func (s *mirrorState) WatchKindAggregated(context.Context, resource.Kind, chan<- []state.Event, ...state.WatchKindOption) error {
	return unsupported{omni.ErrReadOnly}
}
