package omnitest

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

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
