package plan

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestHoldBack(t *testing.T) {
	lostSet := step{
		change: Change{Action: ActionDestroy, Type: omnires.MachineSetType, ID: "demo-old", Destructive: true},
		set:    "demo-old", machines: []string{omnitest.Machine2},
	}
	lostNode := step{
		change: Change{Action: ActionDestroy, Type: omnires.MachineSetNodeType, ID: omnitest.Machine3, Destructive: true},
		set:    "demo-workers", machines: []string{omnitest.Machine3},
	}
	shrunkSet := step{
		change: Change{Action: ActionUpdate, Type: omnires.MachineSetType, ID: "demo-class", Destructive: true}, set: "demo-class",
	}
	begun := lostNode
	begun.change.TearingDown = true

	newNode := func(set string) step {
		return step{change: Change{Action: ActionCreate, Type: omnires.MachineSetNodeType, ID: omnitest.Machine1}, set: set, machines: []string{omnitest.Machine1}}
	}
	patch := func(action Action, set, machine string) step {
		s := step{change: Change{Action: action, Type: omnires.ConfigPatchType, ID: "p"}, set: set}
		if machine != "" {
			s.machines = []string{machine}
		}

		return s
	}
	begunPatch := patch(ActionDestroy, "demo-old", "")
	begunPatch.change.TearingDown = true

	kernelArgs := func(machine string) step {
		return step{change: Change{Action: ActionUpdate, Type: omnires.KernelArgsType, ID: machine}, machines: []string{machine}}
	}

	for name, test := range map[string]struct {
		steps []step
		want  []bool
	}{
		"nothing destructive":                   {[]step{newNode("demo-workers"), patch(ActionDestroy, "", "")}, []bool{false, false}},
		"the destructive change itself":         {[]step{lostNode, lostSet, shrunkSet}, []bool{true, true, true}},
		"the end of its patch, begun":           {[]step{lostSet, begunPatch}, []bool{true, false}},
		"what is begun goes on":                 {[]step{begun}, []bool{false}},
		"a new machine of a held set":           {[]step{shrunkSet, newNode("demo-class")}, []bool{true, true}},
		"a new machine elsewhere":               {[]step{shrunkSet, newNode("demo-workers")}, []bool{true, false}},
		"the patch of a set that is to go":      {[]step{lostSet, patch(ActionDestroy, "demo-old", "")}, []bool{true, true}},
		"the patch of a machine of such a set":  {[]step{lostSet, patch(ActionDestroy, "", omnitest.Machine2)}, []bool{true, true}},
		"the patch of a machine that is to go":  {[]step{lostNode, patch(ActionDestroy, "", omnitest.Machine3)}, []bool{true, true}},
		"another patch":                         {[]step{lostNode, patch(ActionDestroy, "demo-workers", "")}, []bool{true, false}},
		"a changed patch of a set that is held": {[]step{shrunkSet, patch(ActionUpdate, "demo-class", "")}, []bool{true, false}},
		"kernel arguments of such a machine":    {[]step{kernelArgs(omnitest.Machine3), lostNode}, []bool{true, true}},
		"kernel arguments of another":           {[]step{kernelArgs(omnitest.Machine1), lostNode}, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, holdBack(test.steps, nil, nil)); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff(make([]bool, len(test.steps)), holdBack(test.steps, EveryChange, nil)); diff != "" {
				t.Errorf("with consent: %s", diff)
			}
		})
	}
}

// TestHoldBackByChange checks that consent is given change by change: a change without consent is held, with what
// depends on it, and with its set's teardown.
func TestHoldBackByChange(t *testing.T) {
	node := func(set, machine string) step {
		return step{
			change: Change{Action: ActionDestroy, Type: omnires.MachineSetNodeType, ID: machine, Set: set, Destructive: true},
			set:    set, machines: []string{machine},
		}
	}
	set := func(id string) step {
		return step{change: Change{Action: ActionDestroy, Type: omnires.MachineSetType, ID: id, Set: id, Destructive: true}, set: id}
	}
	begun := func(s step) step {
		s.change.TearingDown = true

		return s
	}
	labels := func(id string) step {
		return step{change: Change{Action: ActionUpdate, Type: omnires.MachineSetType, ID: id, Set: id}, set: id}
	}
	joins := func(set, machine string) step {
		return step{change: Change{Action: ActionCreate, Type: omnires.MachineSetNodeType, ID: machine, Set: set}, set: set, machines: []string{machine}}
	}
	ofControlPlane := func(s step) step {
		s.controlPlane = true

		return s
	}
	patchOf := func(set, machine string) step {
		return step{change: Change{Action: ActionDestroy, Type: omnires.ConfigPatchType, ID: "p"}, set: set, machines: []string{machine}}
	}

	for name, test := range map[string]struct {
		steps   []step
		consent []string // IDs
		want    []bool
	}{
		"one of two sets":                        {[]step{set("demo-a"), set("demo-b")}, []string{"demo-a"}, []bool{false, true}},
		"one of two machines":                    {[]step{node("demo-a", omnitest.Machine1), node("demo-a", omnitest.Machine2)}, []string{omnitest.Machine1}, []bool{false, true}},
		"a set with a machine that has none":     {[]step{node("demo-a", omnitest.Machine1), set("demo-a")}, []string{"demo-a"}, []bool{true, true}},
		"a set whose machines have consent, too": {[]step{node("demo-a", omnitest.Machine1), set("demo-a")}, []string{"demo-a", omnitest.Machine1}, []bool{false, false}},
		"a machine waits with its set":           {[]step{node("demo-a", omnitest.Machine1), set("demo-a")}, []string{omnitest.Machine1}, []bool{true, true}},
		"a set that goes already":                {[]step{node("demo-a", omnitest.Machine1), begun(set("demo-a"))}, nil, []bool{true, false}},
		"another change of its set":              {[]step{node("demo-a", omnitest.Machine1), labels("demo-a")}, nil, []bool{true, false}},
		"a new member of a control plane":        {[]step{ofControlPlane(node("demo-a", omnitest.Machine1)), ofControlPlane(joins("demo-a", omnitest.Machine2))}, nil, []bool{true, false}},
		"a machine of another set":               {[]step{node("demo-b", omnitest.Machine1), set("demo-a")}, []string{"demo-a"}, []bool{true, false}},
		"patches go with their machine": {
			[]step{patchOf("demo-a", omnitest.Machine1), patchOf("demo-b", omnitest.Machine2), node("demo-a", omnitest.Machine1), node("demo-b", omnitest.Machine2)},
			[]string{omnitest.Machine1}, []bool{false, true, false, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := holdBack(test.steps, func(change Change) bool { return slices.Contains(test.consent, change.ID) }, nil)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestApplyLooksAgainBeforeItDestroys checks that nothing is torn down if Omni changed between the plan and its
// destroys.
func TestApplyLooksAgainBeforeItDestroys(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, *omnitest.FakeOmni){
		"another owner's mark": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, omnitest.ClusterNamed("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set("omni.texashpc.com/owner-uid", "uid-2") })
		},
		"the cluster is gone": func(t *testing.T, st *omnitest.FakeOmni) { omnitest.MustDestroy(t, st, omnitest.ClusterNamed("demo")) },
		"a lock": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, omnitest.ClusterNamed("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Set(omnires.ClusterLocked, "") })
		},
		"another size of the set": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustChange(t, st, omnitest.SetNamed("demo", "workers"), func(s *omnires.MachineSet) {
				s.TypedSpec().Value.MachineAllocation.MachineCount = 7
			})
		},
		"the set was made again": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustDestroy(t, st, omnitest.SetNamed("demo", "workers"))
			time.Sleep(2 * time.Millisecond) // the clock of the in-memory state has to go on
			omnitest.MustCreate(t, st, omnitest.SetNamed("demo", "workers"))
		},
		"a machine was put into the set": func(t *testing.T, st *omnitest.FakeOmni) {
			omnitest.MustCreate(t, st, omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("demo", "workers")), "demo"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+omnitest.ClassDocument("cpu", "2"))

			plan := mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument, Options{})
			meanwhile(t, st)

			result, err := Apply(t.Context(), st, plan, ApplyOptions{Consent: EveryChange})
			if !errors.Is(err, omni.ErrPlanOutdated) || omni.Classify(err) != omni.ClassConflict || len(result.Taken()) > 0 {
				t.Errorf("%v, %+v", err, result)
			}

			set, err := st.Get(t.Context(), omnitest.SetNamed("demo", "workers").Metadata())
			if err != nil || set.Metadata().Phase() != resource.PhaseRunning {
				t.Errorf("the set: %v %v", set, err)
			}
		})
	}
}
