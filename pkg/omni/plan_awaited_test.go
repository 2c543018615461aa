package omni

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func TestAwaitedByAnError(t *testing.T) {
	node := &CollisionError{Type: omnires.MachineSetNodeType, ID: machine1, Cluster: "other"}
	set := &CollisionError{Type: omnires.MachineSetType, ID: "demo-workers"}
	want := []resourceKey{
		{resourceType: omnires.MachineSetNodeType, id: machine1},
		{resourceType: omnires.ClusterType, id: "other"},
		{resourceType: omnires.MachineSetType, id: "demo-workers"},
	}

	got := awaitedBy(fmt.Errorf("plan: %w", joinCollisions([]*CollisionError{set, node})))
	slices.SortFunc(got, func(a, b resourceKey) int { return indexIn(want, a) - indexIn(want, b) })

	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		t.Error(diff)
	}

	if keys := awaitedBy(ErrBehind); keys != nil {
		t.Errorf("%v", keys)
	}
}

func indexIn(all []resourceKey, one resourceKey) int { return slices.Index(all, one) }
