package omni

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// What comes free between the plan and the note is not missed.
func TestAwaitTellsWhatIsNew(t *testing.T) {
	s := newStore(mirroredKinds())
	key := func(id resource.ID) resourceKey { return resourceKey{resourceType: omnires.MachineSetNodeType, id: id} }

	for i, step := range []struct {
		keys []resourceKey
		want bool
	}{
		{nil, false},
		{[]resourceKey{key("a")}, true},
		{[]resourceKey{key("a")}, false},
		{[]resourceKey{key("a"), key("b")}, true},
		{[]resourceKey{key("b")}, false},
		{nil, false},
		{[]resourceKey{key("b")}, true},
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
