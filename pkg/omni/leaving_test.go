package omni

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func TestLeaving(t *testing.T) {
	node := func(machine, set string) resource.Resource {
		return labelled(omnires.NewMachineSetNode(machine, setNamed("demo", set)), "demo")
	}

	for name, test := range map[string]struct {
		prepare func(t *testing.T, st state.State)
		want    []Blocker
		since   []bool // known
	}{
		"everybody stays": {prepare: func(*testing.T, state.State) {}},
		"a machine of a set": {
			prepare: func(t *testing.T, st state.State) { tearDown(t, st, node(machine3, "workers")) },
			want:    []Blocker{{Machine: machine3, MachineSet: "demo-workers"}}, since: []bool{true},
		},
		"a set": {
			prepare: func(t *testing.T, st state.State) { tearDown(t, st, setNamed("demo", "workers")) },
			want: []Blocker{
				{Machine: machine3, MachineSet: "demo-workers"}, {Machine: machine2, MachineSet: "demo-workers", Connected: true},
			},
			since: []bool{true, true},
		},
		"a machine that no set lists any more": {
			prepare: func(t *testing.T, st state.State) { mustDestroy(t, st, node(machine2, "workers")) },
			want:    []Blocker{{Machine: machine2, Connected: true}}, since: []bool{false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFakeOmni()
			mustSync(t, st, fullTemplate)

			for _, machine := range []string{machine1, machine2, machine3} {
				machineIn(t, st, machine, machine != machine3)
			}

			test.prepare(t, st)

			got, err := Leaving(t.Context(), st, "demo")
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Blocker{}, "Since"), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}

			for i, blocker := range got {
				if blocker.Since.IsZero() == test.since[i] {
					t.Errorf("machine %s leaves since %v", blocker.Machine, blocker.Since)
				}
			}
		})
	}
}

func TestLeavingOfNothing(t *testing.T) {
	if got, err := Leaving(t.Context(), newFakeOmni(), "demo"); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
}
