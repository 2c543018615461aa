package omnisim

import (
	"context"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusal is the server's error for a refused request. Its text has the form of Omni's: a prefix, the number of
// reasons, and a line for each. The code is InvalidArgument unless a reason has one.
type refusal struct{ reasons []error }

func newRefusal(reasons ...error) error { return refusal{reasons: reasons} }

// Error returns the text with all reasons.
func (r refusal) Error() string {
	noun := "errors"
	if len(r.reasons) == 1 {
		noun = "error"
	}

	var text strings.Builder

	fmt.Fprintf(&text, "failed to validate: %d %s occurred:\n", len(r.reasons), noun)

	for _, reason := range r.reasons {
		fmt.Fprintf(&text, "\t* %s\n", reason)
	}

	return text.String() + "\n"
}

// GRPCStatus returns the status with its code.
func (r refusal) GRPCStatus() *status.Status {
	for _, reason := range r.reasons {
		if s, ok := status.FromError(reason); ok {
			return status.New(s.Code(), r.Error())
		}
	}

	return status.New(codes.InvalidArgument, r.Error())
}

// validatedState refuses what Omni refuses, for every caller but the engine. A write that tears a resource down is
// checked like a destroy.
type validatedState struct {
	state.CoreState
	rules rules
}

var (
	_ state.Teardowner           = (*validatedState)(nil)
	_ state.TeardownAndDestroyer = (*validatedState)(nil)
)

func newValidatedState(resources state.State, options Options, version *speaks) *validatedState {
	return &validatedState{CoreState: resources, rules: rules{
		state: resources, catalogue: options.Catalogue, version: version,
		refuseConcurrentUpgrades: options.RefuseConcurrentUpgrades,
		embeddedDiscovery:        options.EmbeddedDiscovery,
		newerTalos:               options.NewerTalos,
	}}
}

// Create creates a resource if the rules allow it.
func (v *validatedState) Create(ctx context.Context, res resource.Resource, opts ...state.CreateOption) error {
	if reasons := v.rules.create(ctx, res); len(reasons) > 0 {
		return newRefusal(reasons...)
	}

	return v.CoreState.Create(ctx, res, opts...)
}

// Update updates a resource if the rules allow it.
func (v *validatedState) Update(ctx context.Context, res resource.Resource, opts ...state.UpdateOption) error {
	existing, err := v.Get(ctx, res.Metadata())
	if err != nil {
		return err
	}

	reasons := v.rules.update(ctx, existing, res)
	if res.Metadata().Phase() == resource.PhaseTearingDown {
		reasons = append(reasons, v.rules.destroy(ctx, existing)...)
	}

	if len(reasons) > 0 {
		return newRefusal(reasons...)
	}

	return v.CoreState.Update(ctx, res, opts...)
}

// Destroy destroys a resource if the rules allow it.
func (v *validatedState) Destroy(ctx context.Context, ptr resource.Pointer, opts ...state.DestroyOption) error {
	if err := v.mayDestroy(ctx, ptr); err != nil {
		return err
	}

	return v.CoreState.Destroy(ctx, ptr, opts...)
}

// Teardown marks a resource for destruction if the rules allow it.
func (v *validatedState) Teardown(ctx context.Context, ptr resource.Pointer, opts ...state.TeardownOption) (bool, error) {
	if err := v.mayDestroy(ctx, ptr); err != nil {
		return false, err
	}

	return state.WrapCore(v.CoreState).Teardown(ctx, ptr, opts...)
}

// TeardownAndDestroy tears a resource down and destroys it if the rules allow it.
func (v *validatedState) TeardownAndDestroy(ctx context.Context, ptr resource.Pointer, opts ...state.TeardownAndDestroyOption) error {
	if err := v.mayDestroy(ctx, ptr); err != nil {
		return err
	}

	return state.WrapCore(v.CoreState).TeardownAndDestroy(ctx, ptr, opts...)
}

func (v *validatedState) mayDestroy(ctx context.Context, ptr resource.Pointer) error {
	existing, err := v.Get(ctx, ptr)
	if err != nil {
		return err
	}

	if reasons := v.rules.destroy(ctx, existing); len(reasons) > 0 {
		return newRefusal(reasons...)
	}

	return nil
}
