package omni

import (
	"errors"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func TestPlanRefusesCollisions(t *testing.T) {
	managed := labelled(omnires.NewMachineSetNode(machine2, setNamed("other", "workers")), "other")
	managed.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")

	here := func(*testing.T, *fakeOmni) {}

	for name, test := range map[string]struct {
		existing resource.Resource
		owner    string
		meddle   func(*testing.T, *fakeOmni) // with the cluster "other"
		want     string
	}{
		"a machine of another cluster": {
			labelled(omnires.NewMachineSetNode(machine2, setNamed("other", "workers")), "other"), "", here,
			`MachineSetNode "` + machine2 + `" is already in use in Omni by cluster "other"`,
		},
		"a machine of another cluster's class": {
			managed, "MachineSetNodeController", here,
			`MachineSetNode "` + machine2 + `" is already in use in Omni by cluster "other" through a machine class`,
		},
		"a set of another cluster": {
			labelled(omnires.NewMachineSet("demo-workers"), "other"), "", here,
			`MachineSet "demo-workers" is already in use in Omni by cluster "other"`,
		},
		"a set of nobody": {
			omnires.NewMachineSet("demo-workers"), "", here,
			`MachineSet "demo-workers" is already in use in Omni by something that names no cluster`,
		},
		"a machine of a cluster that goes": {
			labelled(omnires.NewMachineSetNode(machine2, setNamed("other", "workers")), "other"), "",
			func(t *testing.T, st *fakeOmni) { tearDown(t, st, clusterNamed("other")) },
			`MachineSetNode "` + machine2 + `" is already in use in Omni by cluster "other", which is being torn down`,
		},
		"a machine of a cluster that is gone": {
			labelled(omnires.NewMachineSetNode(machine2, setNamed("other", "workers")), "other"), "",
			func(t *testing.T, st *fakeOmni) { mustDestroy(t, st, clusterNamed("other")) },
			`MachineSetNode "` + machine2 + `" is already in use in Omni by cluster "other", which Omni does not have any more: remove what is left of it there`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFakeOmni()

			if err := st.Create(t.Context(), test.existing, state.WithCreateOwner(test.owner)); err != nil {
				t.Fatal(err)
			}

			mustCreate(t, st, clusterNamed("other"))
			test.meddle(t, st)

			_, err := PlanSync(t.Context(), st, []byte(fullTemplate), PlanOptions{})

			var collision *CollisionError
			if !errors.Is(err, ErrCollision) || !errors.As(err, &collision) {
				t.Fatalf("error %v", err)
			}

			if err.Error() != test.want || collision.ID != test.existing.Metadata().ID() {
				t.Errorf("got  %v\nwant %v", err, test.want)
			}
		})
	}
}

func TestPlanNamesEveryCollision(t *testing.T) {
	st := newFakeOmni()
	mustCreate(t, st, clusterNamed("other"), clusterNamed("another"),
		labelled(omnires.NewMachineSetNode(machine3, setNamed("other", "workers")), "other"),
		labelled(omnires.NewMachineSetNode(machine2, setNamed("another", "workers")), "another"),
	)

	_, err := PlanSync(t.Context(), st, []byte(fullTemplate), PlanOptions{})
	if err == nil || !strings.Contains(Message(err), `cluster "another" MachineSetNode "`+machine3+`"`) {
		t.Errorf("got %v", Message(err))
	}
}
