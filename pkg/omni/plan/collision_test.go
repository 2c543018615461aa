package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
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

// TestMachineThatAClassOfTheClusterHolds lists a machine that Omni took for another set of the cluster. It is waited for if
// that set will release it, and a collision if it will not.
func TestMachineThatAClassOfTheClusterHolds(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	listed := workers("y", omnitest.Machine2)
	otherClass := strings.Replace(classWorkers("x", "2"), "name: cpu", "name: gpu", 1)
	here := func(*testing.T, *omnitest.FakeOmni, resource.Resource) {}

	for name, test := range map[string]struct {
		wanted string // beside the set that lists the machine
		meddle func(*testing.T, *omnitest.FakeOmni, resource.Resource)
		waits  bool
	}{
		"the set stays":              {classWorkers("x", "2"), here, false},
		"it grows":                   {classWorkers("x", "3"), here, false},
		"it gets all that there are": {classWorkers("x", "unlimited"), here, false},
		"it goes":                    {"", here, true},
		"it leaves the class":        {workers("x", omnitest.Machine3), here, true},
		"it gets another class":      {otherClass, here, false},
		"it shrinks":                 {classWorkers("x", "1"), here, true},
		"it shrinks to what it has anyway": {classWorkers("x", "1"), func(t *testing.T, st *omnitest.FakeOmni, _ resource.Resource) {
			omnitest.MustDestroy(t, st, omnires.NewMachineSetNode(omnitest.Machine3, omnitest.SetNamed("demo", "x")))
		}, false},
		"it has shrunk, and Omni has not released one yet": {classWorkers("x", "1"), func(t *testing.T, st *omnitest.FakeOmni, _ resource.Resource) {
			omnitest.MustChange(t, st, omnitest.SetNamed("demo", "x"), func(set *omnires.MachineSet) { set.TypedSpec().Value.MachineAllocation.MachineCount = 1 })
		}, true},
		"it is being torn down, and made again": {classWorkers("x", "2"), func(t *testing.T, st *omnitest.FakeOmni, _ resource.Resource) {
			omnitest.TearDown(t, st, omnitest.SetNamed("demo", "x"))
		}, true},
		"it is gone, and made again": {classWorkers("x", "2"), func(t *testing.T, st *omnitest.FakeOmni, _ resource.Resource) {
			omnitest.MustDestroy(t, st, omnitest.SetNamed("demo", "x"))
		}, true},
		"the machine leaves it": {classWorkers("x", "2"), func(t *testing.T, st *omnitest.FakeOmni, node resource.Resource) {
			omnitest.TearDown(t, st, node)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, base+classWorkers("x", "2"))

			var first resource.Resource

			for _, id := range []string{omnitest.Machine2, omnitest.Machine3} {
				node := omnitest.Labelled(omnires.NewMachineSetNode(id, omnitest.SetNamed("demo", "x")), "demo")
				node.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")
				omnitest.MustCreate(t, st, node)

				if first == nil {
					first = node
				}
			}

			test.meddle(t, st, first)

			plan, err := Sync(t.Context(), st, mustLoad(t, base+test.wanted+listed), Options{})
			if test.waits {
				if err != nil || !slices.ContainsFunc(plan.WaitingForOmni, func(change Change) bool { return change.ID == omnitest.Machine2 }) {
					t.Fatalf("error %v, plan %v", err, plan)
				}

				return
			}

			want := `MachineSetNode "` + omnitest.Machine2 + `" is already in use in Omni by MachineSet "demo-x", which got it from machine class "cpu" and keeps it: ` +
				`take it off the list of MachineSet "demo-y", or out of MachineSet "demo-x", which wipes it: omnictl cluster machine delete ` + omnitest.Machine2 +
				` (from a set that gets smaller, Omni wipes the machine that it chooses itself)`
			if !errors.Is(err, omni.ErrCollision) || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

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
