package omni

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
)

// refusingOmni fails writes of one resource, and notes every write.
type refusingOmni struct {
	state.CoreState

	refuse string // ID of the resource that is refused
	with   error
	writes []string
}

func (r *refusingOmni) note(verb string, pointer resource.Pointer) error {
	r.writes = append(r.writes, verb+" "+KindOf(pointer.Type())+" "+pointer.ID())

	if pointer.ID() == r.refuse {
		return r.with
	}

	return nil
}

// Create implements state.CoreState.
func (r *refusingOmni) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	if err := r.note("create", item.Metadata()); err != nil {
		return err
	}

	return r.CoreState.Create(ctx, item, options...)
}

// Update implements state.CoreState.
func (r *refusingOmni) Update(ctx context.Context, item resource.Resource, options ...state.UpdateOption) error {
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
func (r *refusingOmni) Destroy(ctx context.Context, pointer resource.Pointer, options ...state.DestroyOption) error {
	if err := r.note("destroy", pointer); err != nil {
		return err
	}

	return r.CoreState.Destroy(ctx, pointer, options...)
}
