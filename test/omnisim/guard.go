package omnisim

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
)

// guardedState is the state for clients: it checks the caller's role first, and records every successful write in the
// journal.
type guardedState struct {
	state   state.CoreState
	journal *journal
	version *speaks
}

var (
	_ state.Teardowner           = (*guardedState)(nil)
	_ state.TeardownAndDestroyer = (*guardedState)(nil)
)

func (g *guardedState) allow(ctx context.Context, resourceType resource.Type, verb state.Verb) error {
	if err := checkAccess(ctx, g.version, resourceType, verb); err != nil {
		return newRefusal(err)
	}

	return nil
}

// Get returns one resource.
func (g *guardedState) Get(ctx context.Context, ptr resource.Pointer, opts ...state.GetOption) (resource.Resource, error) {
	if err := g.allow(ctx, ptr.Type(), state.Get); err != nil {
		return nil, err
	}

	return g.state.Get(ctx, ptr, opts...)
}

// List returns the resources of a type.
func (g *guardedState) List(ctx context.Context, kind resource.Kind, opts ...state.ListOption) (resource.List, error) {
	if err := g.allow(ctx, kind.Type(), state.List); err != nil {
		return resource.List{}, err
	}

	return g.state.List(ctx, kind, opts...)
}

// Create creates a resource.
func (g *guardedState) Create(ctx context.Context, res resource.Resource, opts ...state.CreateOption) error {
	if err := g.allow(ctx, res.Metadata().Type(), state.Create); err != nil {
		return err
	}

	return g.journal.write(ctx, verbCreate, res.Metadata(), g.state.Create(ctx, res, opts...))
}

// Update updates a resource.
func (g *guardedState) Update(ctx context.Context, res resource.Resource, opts ...state.UpdateOption) error {
	verb, name := state.Update, verbUpdate
	if res.Metadata().Phase() == resource.PhaseTearingDown {
		name = verbTeardown
	}

	if err := g.allow(ctx, res.Metadata().Type(), verb); err != nil {
		return err
	}

	return g.journal.write(ctx, name, res.Metadata(), g.state.Update(ctx, res, opts...))
}

// Destroy destroys a resource that has no finalizers.
func (g *guardedState) Destroy(ctx context.Context, ptr resource.Pointer, opts ...state.DestroyOption) error {
	if err := g.allow(ctx, ptr.Type(), state.Destroy); err != nil {
		return err
	}

	return g.journal.write(ctx, verbDestroy, ptr, g.state.Destroy(ctx, ptr, opts...))
}

// Teardown marks a resource for destruction. It needs the right to destroy.
func (g *guardedState) Teardown(ctx context.Context, ptr resource.Pointer, opts ...state.TeardownOption) (bool, error) {
	if err := g.allow(ctx, ptr.Type(), state.Destroy); err != nil {
		return false, err
	}

	ready, err := state.WrapCore(g.state).Teardown(ctx, ptr, opts...)

	return ready, g.journal.write(ctx, verbTeardown, ptr, err)
}

// TeardownAndDestroy marks a resource, waits until its finalizers are gone, and destroys it.
func (g *guardedState) TeardownAndDestroy(ctx context.Context, ptr resource.Pointer, opts ...state.TeardownAndDestroyOption) error {
	if err := g.allow(ctx, ptr.Type(), state.Destroy); err != nil {
		return err
	}

	return g.journal.write(ctx, verbDestroy, ptr, state.WrapCore(g.state).TeardownAndDestroy(ctx, ptr, opts...))
}

// Watch watches one resource.
func (g *guardedState) Watch(ctx context.Context, ptr resource.Pointer, ch chan<- state.Event, opts ...state.WatchOption) error {
	if err := g.allow(ctx, ptr.Type(), state.Watch); err != nil {
		return err
	}

	return g.state.Watch(ctx, ptr, ch, opts...)
}

// WatchKind watches the resources of a type.
func (g *guardedState) WatchKind(ctx context.Context, kind resource.Kind, ch chan<- state.Event, opts ...state.WatchKindOption) error {
	if err := g.allow(ctx, kind.Type(), state.Watch); err != nil {
		return err
	}

	return g.state.WatchKind(ctx, kind, ch, opts...)
}

// WatchKindAggregated watches the resources of a type in batches.
func (g *guardedState) WatchKindAggregated(ctx context.Context, kind resource.Kind, ch chan<- []state.Event, opts ...state.WatchKindOption) error {
	if err := g.allow(ctx, kind.Type(), state.Watch); err != nil {
		return err
	}

	return g.state.WatchKindAggregated(ctx, kind, ch, opts...)
}
