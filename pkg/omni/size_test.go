package omni

import (
	"testing"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func TestShrinks(t *testing.T) {
	for name, test := range map[string]struct {
		from, to setSize
		want     string
	}{
		"same":                          {setSize{class: "a", count: 3}, setSize{class: "a", count: 3}, ""},
		"grows":                         {setSize{class: "a", count: 3}, setSize{class: "a", count: 5}, ""},
		"shrinks":                       {setSize{class: "a", count: 5}, setSize{class: "a", count: 3}, "lowers its machine count"},
		"to nothing":                    {setSize{class: "a", count: 5}, setSize{class: "a", count: 0}, "lowers its machine count"},
		"other class, more":             {setSize{class: "a", count: 3}, setSize{class: "b", count: 9}, "changes its machine class"},
		"unlimited to a number":         {setSize{class: "a", unlimited: true}, setSize{class: "a", count: 99}, "goes from unlimited to a number"},
		"a number to unlimited":         {setSize{class: "a", count: 99}, setSize{class: "a", unlimited: true}, ""},
		"unlimited stays":               {setSize{class: "a", unlimited: true, count: 5}, setSize{class: "a", unlimited: true}, ""},
		"class to listed machines":      {setSize{class: "a", count: 3}, setSize{count: 3}, "leaves its machine class"},
		"listed machines to class":      {setSize{count: 3}, setSize{class: "a", count: 1}, ""},
		"fewer listed machines":         {setSize{count: 3}, setSize{count: 1}, ""},
		"unlimited to another, limited": {setSize{class: "a", unlimited: true}, setSize{class: "b", count: 1}, "changes its machine class"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shrinks(test.from, test.to); got != test.want {
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
		"4":             setNamed("demo", "workers"),
		"cpu/3":         classSet("demo", "workers", "cpu", 3),
		"cpu/0":         classSet("demo", "workers", "cpu", 0),
		"cpu/unlimited": unlimitedSet("demo", "workers", "cpu"),
		"gpu/2":         old,
	} {
		if got := sizeOf(set, 4).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
