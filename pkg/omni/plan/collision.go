package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// findCollisions looks up the resources that the template wants. A resource of another cluster is an error: the library
// would silently relabel it. A machine that a class of this very cluster allocated is no error: it is returned as
// leased, because the set has to leave the class first.
func findCollisions(
	ctx context.Context, st state.State, cluster string, expected []resource.Resource,
) (leased map[omni.ResourceKey]bool, err error) {
	leased = map[omni.ResourceKey]bool{}

	var collisions []*CollisionError

	for _, item := range expected {
		switch item.Metadata().Type() {
		case omnires.ClusterType, omnires.KernelArgsType: // these belong to no cluster
			continue
		}

		existing, err := st.Get(ctx, *item.Metadata())
		if state.IsNotFoundError(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", resource.String(item), err)
		}

		collision := collides(existing, cluster)

		switch {
		case collision == nil:
		case collision.Allocated && collision.Cluster == cluster:
			leased[omni.KeyOf(item)] = true
		default:
			if err := describeOwner(ctx, st, collision); err != nil {
				return nil, err
			}

			collisions = append(collisions, collision)
		}
	}

	return leased, joinCollisions(collisions)
}

// collides decides about one existing resource; nil means that this cluster may change it.
func collides(existing resource.Resource, cluster string) *CollisionError {
	metadata := existing.Metadata()
	owner, _ := metadata.Labels().Get(omnires.LabelCluster)
	_, allocated := metadata.Labels().Get(omnires.LabelManagedByMachineSetNodeController)

	if owner == cluster && !allocated && metadata.Owner() == "" {
		return nil
	}

	return &CollisionError{Type: metadata.Type(), ID: metadata.ID(), Cluster: owner, Allocated: allocated}
}

// describeOwner looks up the state of the cluster that has the resource.
func describeOwner(ctx context.Context, st state.State, collision *CollisionError) error {
	if collision.Cluster == "" {
		return nil
	}

	owner, err := omni.ReadCluster(ctx, st, collision.Cluster)
	if err != nil {
		return err
	}

	collision.Gone = owner == nil
	collision.Leaving = owner != nil && owner.Metadata().Phase() == resource.PhaseTearingDown

	return nil
}

func joinCollisions(collisions []*CollisionError) error {
	slices.SortFunc(collisions, func(a, b *CollisionError) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})

	joined := make([]error, 0, len(collisions))
	for _, collision := range collisions {
		joined = append(joined, collision)
	}

	return errors.Join(joined...)
}

// hidingState hides some resources of a state.
type hidingState struct {
	state.CoreState

	hidden map[omni.ResourceKey]bool
}

// Get implements state.CoreState.
func (s *hidingState) Get(ctx context.Context, pointer resource.Pointer, options ...state.GetOption) (resource.Resource, error) {
	if s.hidden[omni.ResourceKey{ResourceType: pointer.Type(), ID: pointer.ID()}] {
		return nil, omni.NotFoundf("resource %s(%s) is hidden", pointer.Type(), pointer.ID())
	}

	return s.CoreState.Get(ctx, pointer, options...)
}
