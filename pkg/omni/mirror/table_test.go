package mirror

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// TestNamesOfNoClusterAreNotTold checks that a change of something whose label names no possible cluster concerns none:
// the label may be as long as a message.
func TestNamesOfNoClusterAreNotTold(t *testing.T) {
	longest := strings.Repeat("x", 63)

	for label, want := range map[string][]string{
		"":            nil,
		"demo":        {"demo"},
		longest:       {longest},
		longest + "x": nil,
	} {
		set := omnires.NewMachineSet("demo-workers")
		set.Metadata().Labels().Set(omnires.LabelCluster, label)

		touched, _ := newStore(mirroredKinds()).put(stored{Resource: set})
		if diff := cmp.Diff(want, touched, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("label of %d bytes: %s", len(label), diff)
		}

		contents := map[resource.ID]stored{set.Metadata().ID(): {Resource: set}}
		if touched, _ := newStore(mirroredKinds()).replace(omnires.MachineSetType, contents); len(touched) != len(want) {
			t.Errorf("label of %d bytes: %d clusters in the first contents", len(label), len(touched))
		}
	}
}
