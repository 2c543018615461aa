package mirror

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// TestAwaitTellsWhatIsNew checks that Await reports new keys: a resource that becomes free between the plan and Await
// is not missed.
func TestAwaitTellsWhatIsNew(t *testing.T) {
	s := newStore(mirroredKinds())
	key := func(id resource.ID) omni.ResourceKey {
		return omni.ResourceKey{ResourceType: omnires.MachineSetNodeType, ID: id}
	}

	for i, step := range []struct {
		keys []omni.ResourceKey
		want bool
	}{
		{nil, false},
		{[]omni.ResourceKey{key("a")}, true},
		{[]omni.ResourceKey{key("a")}, false},
		{[]omni.ResourceKey{key("a"), key("b")}, true},
		{[]omni.ResourceKey{key("b")}, false},
		{nil, false},
		{[]omni.ResourceKey{key("b")}, true},
	} {
		if got := s.await("demo", step.keys); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}

	s.await("demo", nil)

	if len(s.waiting) != 0 || len(s.awaited) != 0 {
		t.Errorf("kept: %v, %v", s.waiting, s.awaited)
	}
}
