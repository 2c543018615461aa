package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/omnitest"
)

func TestAwaitedByAnError(t *testing.T) {
	node := &CollisionError{Type: omnires.MachineSetNodeType, ID: omnitest.Machine1, Cluster: "other"}
	set := &CollisionError{Type: omnires.MachineSetType, ID: "demo-workers"}
	want := []omni.ResourceKey{
		{ResourceType: omnires.MachineSetNodeType, ID: omnitest.Machine1},
		{ResourceType: omnires.ClusterType, ID: "other"},
		{ResourceType: omnires.MachineSetType, ID: "demo-workers"},
	}

	got := AwaitedBy(fmt.Errorf("plan: %w", joinCollisions([]*CollisionError{set, node})))
	slices.SortFunc(got, func(a, b omni.ResourceKey) int { return indexIn(want, a) - indexIn(want, b) })

	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		t.Error(diff)
	}

	if keys := AwaitedBy(omni.ErrBehind); keys != nil {
		t.Errorf("%v", keys)
	}
}

func indexIn(all []omni.ResourceKey, one omni.ResourceKey) int { return slices.Index(all, one) }
