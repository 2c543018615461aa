// Package omnitest is for tests: an in-memory Omni whose watches can be cut and whose writes can be refused, and the
// resources and templates that tests put into it.
package omnitest

import (
	"context"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// FakeOmni is an in-memory COSI state whose watches can be cut or refused.
type FakeOmni struct {
	state.State

	mu     sync.Mutex
	cut    context.CancelCauseFunc
	alive  context.Context // the simulated network; canceled to cut the running watches
	silent chan struct{}   // closed to silence the running watches
	refuse map[resource.Type]error
}

// NewFakeOmni returns an empty FakeOmni.
func NewFakeOmni() *FakeOmni {
	f := &FakeOmni{
		State: state.WrapCore(namespaced.NewState(func(ns resource.Namespace) state.CoreState {
			return inmem.NewStateWithOptions(inmem.WithHistoryGap(20))(ns)
		})),
		refuse: map[resource.Type]error{}, silent: make(chan struct{}),
	}
	f.alive, f.cut = context.WithCancelCause(context.Background())

	return f
}

// LoseWatches ends every running watch with an error; new ones work unless their type is refused.
func (f *FakeOmni) LoseWatches(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.cut(err)
	f.alive, f.cut = context.WithCancelCause(context.Background())
}

// Silence stops the events of every running watch without ending it; new watches work.
func (f *FakeOmni) Silence() {
	f.mu.Lock()
	defer f.mu.Unlock()

	close(f.silent)
	f.silent = make(chan struct{})
}

// RefuseWatch makes watches of a type fail; nil lets them work again.
func (f *FakeOmni) RefuseWatch(resourceType resource.Type, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.refuse[resourceType] = err
}

// WatchKind implements state.CoreState.
func (f *FakeOmni) WatchKind(ctx context.Context, kind resource.Kind, events chan<- state.Event, options ...state.WatchKindOption) error {
	f.mu.Lock()
	alive, silent, refusal := f.alive, f.silent, f.refuse[kind.Type()]
	f.mu.Unlock()

	if refusal != nil {
		return refusal
	}

	ctx, cancel := context.WithCancel(ctx)
	inner := make(chan state.Event)

	if err := f.State.WatchKind(ctx, kind, inner, options...); err != nil {
		cancel()

		return err
	}

	go func() {
		defer cancel()

		for {
			var event state.Event

			select {
			case <-ctx.Done():
				return
			case <-silent:
				<-ctx.Done()

				return
			case <-alive.Done():
				event = state.Event{Type: state.Errored, Error: context.Cause(alive)}
			case event = <-inner:
			}

			select {
			case <-ctx.Done():
				return
			case events <- event:
			}

			if event.Type == state.Errored {
				return
			}
		}
	}()

	return nil
}

// SilentOmni accepts watches and never sends an event.
type SilentOmni struct{ state.State }

// WatchKind implements state.CoreState.
func (SilentOmni) WatchKind(context.Context, resource.Kind, chan<- state.Event, ...state.WatchKindOption) error {
	return nil
}

// RefusingOmni fails writes of one resource, and records every write.
type RefusingOmni struct {
	state.CoreState

	Refuse string // ID of the resource whose writes fail
	With   error
	Writes []string
}

func (r *RefusingOmni) note(verb string, pointer resource.Pointer) error {
	r.Writes = append(r.Writes, verb+" "+omni.KindOf(pointer.Type())+" "+pointer.ID())

	if pointer.ID() == r.Refuse {
		return r.With
	}

	return nil
}

// Create implements state.CoreState.
func (r *RefusingOmni) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	if err := r.note("create", item.Metadata()); err != nil {
		return err
	}

	return r.CoreState.Create(ctx, item, options...)
}

// Update implements state.CoreState.
func (r *RefusingOmni) Update(ctx context.Context, item resource.Resource, options ...state.UpdateOption) error {
	verb := "update"
	if item.Metadata().Phase() == resource.PhaseTearingDown {
		verb = "teardown"
	}

	if err := r.note(verb, item.Metadata()); err != nil {
		return err
	}

	return r.CoreState.Update(ctx, item, options...)
}

// Destroy implements state.CoreState.
func (r *RefusingOmni) Destroy(ctx context.Context, pointer resource.Pointer, options ...state.DestroyOption) error {
	if err := r.note("destroy", pointer); err != nil {
		return err
	}

	return r.CoreState.Destroy(ctx, pointer, options...)
}

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
