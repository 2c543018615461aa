package observe

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

func TestLeaving(t *testing.T) {
	node := func(machine, set string) resource.Resource {
		return omnitest.Labelled(omnires.NewMachineSetNode(machine, omnitest.SetNamed("demo", set)), "demo")
	}

	for name, test := range map[string]struct {
		prepare func(t *testing.T, st state.State)
		want    []Blocker
		since   []bool // known
	}{
		"everybody stays": {prepare: func(*testing.T, state.State) {}},
		"a machine of a set": {
			prepare: func(t *testing.T, st state.State) { omnitest.TearDown(t, st, node(omnitest.Machine3, "workers")) },
			want:    []Blocker{{Machine: omnitest.Machine3, MachineSet: "demo-workers"}}, since: []bool{true},
		},
		"a set": {
			prepare: func(t *testing.T, st state.State) { omnitest.TearDown(t, st, omnitest.SetNamed("demo", "workers")) },
			want: []Blocker{
				{Machine: omnitest.Machine3, MachineSet: "demo-workers"}, {Machine: omnitest.Machine2, MachineSet: "demo-workers", Connected: true},
			},
			since: []bool{true, true},
		},
		"a machine that no set lists any more": {
			prepare: func(t *testing.T, st state.State) { omnitest.MustDestroy(t, st, node(omnitest.Machine2, "workers")) },
			want:    []Blocker{{Machine: omnitest.Machine2, Connected: true}}, since: []bool{false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			plantest.Sync(t, st, omnitest.FullTemplate)

			for _, machine := range []string{omnitest.Machine1, omnitest.Machine2, omnitest.Machine3} {
				omnitest.MachineIn(t, st, machine, machine != omnitest.Machine3)
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
	if got, err := Leaving(t.Context(), omnitest.NewFakeOmni(), "demo"); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
}
