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

// CollisionError names a resource of the template that another cluster, or another part of this one, already uses. It is
// ErrCollision.
type CollisionError struct {
	// Type is the COSI resource type, such as "MachineSetNodes.omni.sidero.dev".
	Type string
	// ID is the resource's ID; for a MachineSetNode the machine's UUID.
	ID string
	// Cluster is the Omni cluster that has it; empty if the resource names none.
	Cluster string
	// Allocated is true if Omni itself allocated the machine through a machine class.
	Allocated bool
	// Here says, if it is this very cluster, what of it uses the resource, and what to do; else empty.
	Here string
	// Leaving is true if that cluster is being torn down, and Gone if Omni has no cluster of that name (any more).
	Leaving, Gone bool
}

// Error implements error.
func (e *CollisionError) Error() string {
	if e.Here != "" {
		return fmt.Sprintf("%s %q is %s by %s", omni.KindOf(e.Type), e.ID, omni.ErrCollision, e.Here)
	}

	how := ""
	if e.Allocated {
		how = " through a machine class"
	}

	if e.Cluster == "" {
		return fmt.Sprintf("%s %q is %s by something that names no cluster", omni.KindOf(e.Type), e.ID, omni.ErrCollision)
	}

	switch {
	case e.Gone:
		how += ", which Omni does not have any more: remove what is left of it there"
	case e.Leaving:
		how += ", which is being torn down"
	}

	return fmt.Sprintf("%s %q is %s by cluster %q%s", omni.KindOf(e.Type), e.ID, omni.ErrCollision, e.Cluster, how)
}

// Is makes errors.Is(err, ErrCollision) true.
func (e *CollisionError) Is(target error) bool { return target == omni.ErrCollision }

// findCollisions looks up the resources that the template wants. A resource of another cluster is an error: the library
// would silently relabel it. A machine that a class of this very cluster allocated is no error if its set will release it:
// it is returned as leased, because that has to happen first.
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
			if collision.Here, err = keptBy(ctx, st, existing, item, expected); err != nil {
				return nil, err
			}

			if collision.Here != "" {
				collisions = append(collisions, collision)
			} else {
				leased[omni.KeyOf(item)] = true
			}
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

// keptBy returns, for the error, which set keeps a machine that Omni took for it from a class, and how to end that; empty if
// the set will release it: it goes, or leaves the class, or has more machines than it shall have. Which of these Omni releases
// is not known before. Another class of the same size is no reason to release one: Omni only counts
// (MachineSetNodeController of its v1.9.3).
func keptBy(ctx context.Context, st state.State, node, wanted resource.Resource, expected []resource.Resource) (string, error) {
	id, _ := node.Metadata().Labels().Get(omnires.LabelMachineSet)
	list, _ := wanted.Metadata().Labels().Get(omnires.LabelMachineSet)

	set, found, err := classSet(ctx, st, id)
	asked := setAmong(expected, id)

	if err != nil || !found || asked == nil || node.Metadata().Phase() == resource.PhaseTearingDown {
		return "", err
	}

	cluster, _ := set.Metadata().Labels().Get(omnires.LabelCluster)

	nodes, err := omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster)
	if err != nil {
		return "", err
	}

	size, has := omni.SizeOf(asked, 0), len(nodesBySet(staying(nodes))[id])
	if size.Class == "" || !size.Unlimited && has > int(size.Count) {
		return "", nil
	}

	return fmt.Sprintf("MachineSet %q, which got it from machine class %q and keeps it: take it off the list of MachineSet %q, "+
		"or out of MachineSet %[1]q, which wipes it: omnictl cluster machine delete %[4]s (from a set that gets smaller, Omni wipes the machine that it chooses itself)",
		id, omni.SizeOf(set, 0).Class, list, node.Metadata().ID()), nil
}

// setAmong returns the MachineSet of an ID; nil if there is none.
func setAmong(items []resource.Resource, id string) *omnires.MachineSet {
	for _, item := range items {
		if set, isSet := item.(*omnires.MachineSet); isSet && set.Metadata().ID() == id {
			return set
		}
	}

	return nil
}

// classSet reads a set that takes its machines from a class; found is false if it does not, is gone, or is being torn down.
func classSet(ctx context.Context, st state.State, id string) (set *omnires.MachineSet, found bool, err error) {
	item, err := st.Get(ctx, omnires.NewMachineSet(id).Metadata())
	if state.IsNotFoundError(err) {
		return nil, false, nil
	}

	if err != nil {
		return nil, false, fmt.Errorf("look up MachineSet %q: %w", id, err)
	}

	set, isSet := item.(*omnires.MachineSet)

	return set, isSet && set.Metadata().Phase() == resource.PhaseRunning && omni.SizeOf(set, 0).Class != "", nil
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

// AwaitedBy returns the resources that collide, and the clusters that have them: when one of them changes, the error is
// over or has another text.
func AwaitedBy(err error) []omni.ResourceKey {
	var keys []omni.ResourceKey

	for _, collision := range collisionsIn(err) {
		keys = append(keys, omni.ResourceKey{ResourceType: collision.Type, ID: collision.ID})

		if collision.Cluster != "" {
			keys = append(keys, omni.ResourceKey{ResourceType: omnires.ClusterType, ID: collision.Cluster})
		}
	}

	return keys
}

// collisionsIn returns every collision in an error.
func collisionsIn(err error) []*CollisionError {
	switch typed := err.(type) { //nolint:errorlint // the tree is walked here
	case *CollisionError:
		return []*CollisionError{typed}
	case interface{ Unwrap() []error }:
		var found []*CollisionError
		for _, inner := range typed.Unwrap() {
			found = append(found, collisionsIn(inner)...)
		}

		return found
	case interface{ Unwrap() error }:
		return collisionsIn(typed.Unwrap())
	default:
		return nil
	}
}
