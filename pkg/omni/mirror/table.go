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

func (t *table) add(added stored) {
	id := added.Metadata().ID()
	t.byID[id] = added

	cluster, labelled := added.Metadata().Labels().Get(omnires.LabelCluster)
	if !labelled {
		return
	}

	if t.byCluster[cluster] == nil {
		t.byCluster[cluster] = map[resource.ID]resource.Resource{}
	}

	t.byCluster[cluster][id] = added.Resource
}

func (t *table) remove(gone stored) {
	id := gone.Metadata().ID()
	delete(t.byID, id)

	cluster, labelled := gone.Metadata().Labels().Get(omnires.LabelCluster)
	if !labelled {
		return
	}

	delete(t.byCluster[cluster], id)

	if len(t.byCluster[cluster]) == 0 {
		delete(t.byCluster, cluster)
	}
}

// clusterOf returns the cluster that a change of the resource concerns, or "". The caller holds the lock.
func (s *store) clusterOf(t *table, of stored) string {
	if t.kind.clusterFrom == fromID {
		return of.Metadata().ID()
	}

	if cluster, labelled := of.Metadata().Labels().Get(omnires.LabelCluster); labelled {
		return cluster
	}

	if t.kind.clusterFrom != fromMachine {
		return ""
	}

	if machine, ok := of.Resource.(*omnires.MachineStatus); ok && machine.TypedSpec().Value.GetCluster() != "" {
		return machine.TypedSpec().Value.GetCluster()
	}

	return s.clusterOfMachine(of)
}

// clusterOfMachine returns the cluster whose machine has the ID of a resource, or "". Kernel arguments carry only that ID,
// and Omni writes the cluster to a machine that connects some time after it has connected. The caller holds the lock.
func (s *store) clusterOfMachine(of stored) string {
	for _, kind := range []resource.Type{omnires.MachineSetNodeType, omnires.MachineStatusType} {
		related := s.tables[kind]
		if related == nil || kind == of.Metadata().Type() {
			continue
		}

		if machine := related.byID[of.Metadata().ID()]; machine.Resource != nil {
			if cluster := s.clusterOf(related, machine); cluster != "" {
				return cluster
			}
		}
	}

	return ""
}

// sameRevision compares the fields that Omni changes with every write. A resource that was destroyed and created again
// starts at version 1, so the time of its creation counts, too.
func sameRevision(a, b resource.Resource) bool {
	return a.Metadata().Version().Equal(b.Metadata().Version()) &&
		a.Metadata().Created().Equal(b.Metadata().Created()) &&
		a.Metadata().Updated().Equal(b.Metadata().Updated()) &&
		a.Metadata().Phase() == b.Metadata().Phase()
}

// maxClusterName is how long the name of a cluster in Omni may be, in bytes.
const maxClusterName = 63

// distinct drops repeated names, and those that no cluster can have, and keeps the order. A label may be as long as a
// message, and names are kept until they are looked up.
func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	kept := names[:0]

	for _, name := range names {
		if name != "" && len(name) <= maxClusterName && !seen[name] {
			seen[name] = true
			kept = append(kept, name)
		}
	}

	return kept
}

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
