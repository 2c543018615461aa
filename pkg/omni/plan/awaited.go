package plan

import (
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

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
