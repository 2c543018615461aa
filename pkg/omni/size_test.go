package omni_test

import (
	"testing"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestShrinks(t *testing.T) {
	for name, test := range map[string]struct {
		from, to omni.SetSize
		want     string
	}{
		"same":                          {omni.SetSize{Class: "a", Count: 3}, omni.SetSize{Class: "a", Count: 3}, ""},
		"grows":                         {omni.SetSize{Class: "a", Count: 3}, omni.SetSize{Class: "a", Count: 5}, ""},
		"shrinks":                       {omni.SetSize{Class: "a", Count: 5}, omni.SetSize{Class: "a", Count: 3}, "lowers its machine count"},
		"to nothing":                    {omni.SetSize{Class: "a", Count: 5}, omni.SetSize{Class: "a", Count: 0}, "lowers its machine count"},
		"other class, more":             {omni.SetSize{Class: "a", Count: 3}, omni.SetSize{Class: "b", Count: 9}, "changes its machine class"},
		"unlimited to a number":         {omni.SetSize{Class: "a", Unlimited: true}, omni.SetSize{Class: "a", Count: 99}, "goes from unlimited to a number"},
		"a number to unlimited":         {omni.SetSize{Class: "a", Count: 99}, omni.SetSize{Class: "a", Unlimited: true}, ""},
		"unlimited stays":               {omni.SetSize{Class: "a", Unlimited: true, Count: 5}, omni.SetSize{Class: "a", Unlimited: true}, ""},
		"class to listed machines":      {omni.SetSize{Class: "a", Count: 3}, omni.SetSize{Count: 3}, "leaves its machine class"},
		"listed machines to class":      {omni.SetSize{Count: 3}, omni.SetSize{Class: "a", Count: 1}, ""},
		"fewer listed machines":         {omni.SetSize{Count: 3}, omni.SetSize{Count: 1}, ""},
		"unlimited to another, limited": {omni.SetSize{Class: "a", Unlimited: true}, omni.SetSize{Class: "b", Count: 1}, "changes its machine class"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := omni.Shrinks(test.from, test.to); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSizeOf(t *testing.T) {
	old := omnires.NewMachineSet("old")
	//nolint:staticcheck // the field that older Omnis wrote
	old.TypedSpec().Value.MachineClass = &specs.MachineSetSpec_MachineAllocation{Name: "gpu", MachineCount: 2}

	for want, set := range map[string]*omnires.MachineSet{
		"4":             omnitest.SetNamed("demo", "workers"),
		"cpu/3":         omnitest.ClassSet("demo", "workers", "cpu", 3),
		"cpu/0":         omnitest.ClassSet("demo", "workers", "cpu", 0),
		"cpu/unlimited": omnitest.UnlimitedSet("demo", "workers", "cpu"),
		"gpu/2":         old,
	} {
		if got := omni.SizeOf(set, 4).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
