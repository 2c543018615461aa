package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/omnitest"
)

func TestPlanRefusesCollisions(t *testing.T) {
	managed := omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("other", "workers")), "other")
	managed.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")

	here := func(*testing.T, *omnitest.FakeOmni) {}

	for name, test := range map[string]struct {
		existing resource.Resource
		owner    string
		meddle   func(*testing.T, *omnitest.FakeOmni) // with the cluster "other"
		want     string
	}{
		"a machine of another cluster": {
			omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("other", "workers")), "other"), "", here,
			`MachineSetNode "` + omnitest.Machine2 + `" is already in use in Omni by cluster "other"`,
		},
		"a machine of another cluster's class": {
			managed, "MachineSetNodeController", here,
			`MachineSetNode "` + omnitest.Machine2 + `" is already in use in Omni by cluster "other" through a machine class`,
		},
		"a set of another cluster": {
			omnitest.Labelled(omnires.NewMachineSet("demo-workers"), "other"), "", here,
			`MachineSet "demo-workers" is already in use in Omni by cluster "other"`,
		},
		"a set of nobody": {
			omnires.NewMachineSet("demo-workers"), "", here,
			`MachineSet "demo-workers" is already in use in Omni by something that names no cluster`,
		},
		"a machine of a cluster that goes": {
			omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("other", "workers")), "other"), "",
			func(t *testing.T, st *omnitest.FakeOmni) { omnitest.TearDown(t, st, omnitest.ClusterNamed("other")) },
			`MachineSetNode "` + omnitest.Machine2 + `" is already in use in Omni by cluster "other", which is being torn down`,
		},
		"a machine of a cluster that is gone": {
			omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("other", "workers")), "other"), "",
			func(t *testing.T, st *omnitest.FakeOmni) { omnitest.MustDestroy(t, st, omnitest.ClusterNamed("other")) },
			`MachineSetNode "` + omnitest.Machine2 + `" is already in use in Omni by cluster "other", which Omni does not have any more: remove what is left of it there`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()

			if err := st.Create(t.Context(), test.existing, state.WithCreateOwner(test.owner)); err != nil {
				t.Fatal(err)
			}

			omnitest.MustCreate(t, st, omnitest.ClusterNamed("other"))
			test.meddle(t, st)

			_, err := Sync(t.Context(), st, mustLoad(t, omnitest.FullTemplate), Options{})

			var collision *CollisionError
			if !errors.Is(err, omni.ErrCollision) || !errors.As(err, &collision) {
				t.Fatalf("error %v", err)
			}

			if err.Error() != test.want || collision.ID != test.existing.Metadata().ID() {
				t.Errorf("got  %v\nwant %v", err, test.want)
			}
		})
	}
}

func TestPlanNamesEveryCollision(t *testing.T) {
	st := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("other"), omnitest.ClusterNamed("another"),
		omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine3, omnitest.SetNamed("other", "workers")), "other"),
		omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("another", "workers")), "another"),
	)

	_, err := Sync(t.Context(), st, mustLoad(t, omnitest.FullTemplate), Options{})
	if err == nil || !strings.Contains(omni.Message(err), `cluster "another" MachineSetNode "`+omnitest.Machine3+`"`) {
		t.Errorf("got %v", omni.Message(err))
	}
}
