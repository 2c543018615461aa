package plan

import (
	"context"
	"errors"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestRefusals checks which steps of a plan do not go on when Omni refuses the first one. The set demo-a is to have
// machine1, demo-b machine2, and demo-empty, which has none yet, machine5.
func TestRefusals(t *testing.T) {
	wanted := []SetState{
		{ID: "demo-a", Machines: []string{omnitest.Machine1}}, {ID: "demo-b", Machines: []string{omnitest.Machine2}},
		{ID: "demo-empty", Machines: []string{"machine5"}},
	}
	live := []SetState{{ID: "demo-a", Machines: []string{omnitest.Machine3}}, {ID: "demo-b", Size: "pool/1"}, {ID: "demo-empty"}}
	of := func(action Action, kind resource.Type, id, set string, machines ...string) step {
		return step{change: Change{Action: action, Type: kind, ID: id, Set: set}, set: set, machines: machines}
	}
	destructive := func(s step) step {
		s.change.Destructive = true

		return s
	}
	begun := func(s step) step {
		s.change.TearingDown = true

		return destructive(s)
	}

	cluster := of(ActionUpdate, omnires.ClusterType, "demo", "")
	clusterPatch := of(ActionCreate, omnires.ConfigPatchType, "p", "")
	manifest := of(ActionCreate, TypeManifestGroup, "m", "")
	newSet := func(set string) step { return of(ActionCreate, omnires.MachineSetType, set, set) }
	changedSet := func(set string) step { return of(ActionUpdate, omnires.MachineSetType, set, set) }
	lostSet := destructive(of(ActionDestroy, omnires.MachineSetType, "demo-old", "demo-old", omnitest.Machine3))
	node := func(set, machine string) step {
		return of(ActionCreate, omnires.MachineSetNodeType, machine, set, machine)
	}
	lostNode := func(set, machine string) step {
		return destructive(of(ActionDestroy, omnires.MachineSetNodeType, machine, set, machine))
	}
	setPatch := func(action Action, set string) step { return of(action, omnires.ConfigPatchType, "s", set) }
	machinePatch := func(action Action, machine string) step { return of(action, omnires.ConfigPatchType, "m", "", machine) }

	for name, test := range map[string]struct {
		refused step
		others  []step
		want    []bool // that do not go on
	}{
		"a machine of a set that is empty": {node("demo-empty", "machine5"), []step{lostSet, begun(lostSet), lostNode("demo-a", omnitest.Machine4)}, []bool{true, false, false}},
		"a machine of a set that has one":  {node("demo-a", omnitest.Machine1), []step{lostSet}, []bool{false}},
		"the cluster":                      {cluster, []step{newSet("demo-a"), clusterPatch, begun(lostSet)}, []bool{true, true, true}},
		"a patch for all":                  {clusterPatch, []step{newSet("demo-a"), lostSet}, []bool{true, true}},
		"a manifest":                       {manifest, []step{newSet("demo-a"), of(ActionDestroy, TypeManifestGroup, "old", "")}, []bool{true, true}},
		"a new set":                        {newSet("demo-a"), []step{node("demo-a", omnitest.Machine1), setPatch(ActionCreate, "demo-a"), machinePatch(ActionCreate, omnitest.Machine1)}, []bool{true, true, true}},
		"the other set":                    {newSet("demo-a"), []step{newSet("demo-b"), node("demo-b", omnitest.Machine2), machinePatch(ActionUpdate, omnitest.Machine2), cluster}, []bool{false, false, false, false}},
		"its replacement":                  {newSet("demo-a"), []step{lostSet, begun(lostSet), setPatch(ActionDestroy, "demo-old")}, []bool{true, false, true}},
		"a moving machine":                 {newSet("demo-a"), []step{lostNode("demo-b", omnitest.Machine1)}, []bool{true}},
		"a machine elsewhere":              {newSet("demo-a"), []step{lostNode("demo-b", omnitest.Machine3), destructive(changedSet("demo-b"))}, []bool{false, false}},
		"a changed set":                    {changedSet("demo-a"), []step{node("demo-a", omnitest.Machine1), lostNode("demo-a", omnitest.Machine4), lostSet}, []bool{true, true, false}},
		"a set's patch":                    {setPatch(ActionUpdate, "demo-a"), []step{newSet("demo-a"), node("demo-a", omnitest.Machine1), node("demo-b", omnitest.Machine2)}, []bool{true, true, false}},
		"a machine":                        {node("demo-a", omnitest.Machine1), []step{machinePatch(ActionCreate, omnitest.Machine1), lostNode("demo-a", omnitest.Machine3), node("demo-a", omnitest.Machine4)}, []bool{true, true, false}},
		"a machine's patch":                {machinePatch(ActionCreate, omnitest.Machine1), []step{node("demo-a", omnitest.Machine1), lostNode("demo-a", omnitest.Machine3), node("demo-b", omnitest.Machine2)}, []bool{true, true, false}},
		"a patch of a machine that waits to leave its other set": {
			machinePatch(ActionCreate, omnitest.Machine1), []step{lostNode("demo-b", omnitest.Machine1), lostNode("demo-a", omnitest.Machine3), lostNode("demo-b", omnitest.Machine4)}, []bool{true, true, false},
		},
		"the patch of a machine of a new set": {
			machinePatch(ActionCreate, omnitest.Machine1), []step{newSet("demo-a"), lostSet, begun(lostSet)}, []bool{false, true, false},
		},
		"the patch of a machine of a set that is there": {
			machinePatch(ActionCreate, omnitest.Machine2), []step{newSet("demo-a"), lostSet}, []bool{false, false},
		},
		"the end of a machine": {
			lostNode("demo-a", omnitest.Machine3),
			[]step{lostNode("demo-a", omnitest.Machine4), machinePatch(ActionDestroy, omnitest.Machine3), machinePatch(ActionDestroy, omnitest.Machine4)},
			[]bool{false, true, false},
		},
		"the end of a set": {lostSet, []step{setPatch(ActionDestroy, "demo-old"), machinePatch(ActionDestroy, omnitest.Machine3), lostNode("demo-a", omnitest.Machine4)}, []bool{true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRefusals(&Plan{Wanted: wanted, Live: live, steps: append([]step{test.refused}, test.others...)})
			r.noteRefused(test.refused)

			var got []bool

			for _, s := range test.others {
				stopped := r.stop(s)
				if stopped {
					r.noteLeftOut(s)
				}

				got = append(got, stopped)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var errNoClass = status.Error(codes.InvalidArgument, "failed to validate: no such machine class")

// TestApplyKeepsTheSetWhoseSuccessorIsRefused checks that a refusal destroys nothing: a set whose successor is refused
// stays, with all of its machines.
func TestApplyKeepsTheSetWhoseSuccessorIsRefused(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)

	renamed := omnitest.ClusterDocument + omnitest.ControlPlaneDocument + "---\nkind: Workers\nname: renamed\nmachineClass:\n  name: missing\n  size: 2\n"
	plan := mustPlan(t, st, renamed, Options{})
	noting := &omnitest.RefusingOmni{CoreState: st, Refuse: "demo-renamed", With: errNoClass}

	result, err := Apply(t.Context(), state.WrapCore(noting), plan, ApplyOptions{Consent: EveryChange})
	if refusalOf(err) == nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"create MachineSet demo-renamed"}, noting.Writes); diff != "" || len(result.Requested) > 0 {
		t.Error(diff)
	}
}

// TestApplyKeepsTheSetWhoseSuccessorIsNotTried checks the same for a successor that is not even tried, because Omni refuses
// its patch, which comes first.
func TestApplyKeepsTheSetWhoseSuccessorIsNotTried(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)

	plan := mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+classWorkers("renamed", "2", netPatch), Options{})
	noting := &omnitest.RefusingOmni{CoreState: st, Refuse: "400-net", With: status.Error(codes.InvalidArgument, "failed to validate: no such field")}

	result, err := Apply(t.Context(), state.WrapCore(noting), plan, ApplyOptions{Consent: EveryChange})
	if refusalOf(err) == nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"create MachineSet demo-renamed", "destroy MachineSet demo-workers"}, changes(result.Skipped)); diff != "" || len(result.Taken()) > 0 {
		t.Errorf("%s, took %v", diff, changes(result.Taken()))
	}

	if diff := cmp.Diff([]string{"create ConfigPatch 400-net"}, noting.Writes); diff != "" {
		t.Error(diff)
	}
}

// TestApplyDoesNotRepeatAKnownRefusal checks that a recently refused change is not tried again, and holds back the same
// steps.
func TestApplyDoesNotRepeatAKnownRefusal(t *testing.T) {
	st := omnitest.NewFakeOmni()
	noting := &omnitest.RefusingOmni{CoreState: st, Refuse: "demo-workers", With: errNoClass}
	apply := func(known func(Change) *ChangeError) (Result, error) {
		noting.Writes = nil

		return Apply(t.Context(), state.WrapCore(noting), mustPlan(t, st, omnitest.FullTemplate, Options{}), ApplyOptions{RecentRefusal: known})
	}

	first, _ := apply(nil)

	second, err := apply(func(change Change) *ChangeError {
		if change.ID == "demo-workers" {
			return first.Refused[0]
		}

		return nil
	})

	if !errors.Is(err, first.Refused[0]) || len(noting.Writes) > 0 || len(second.Taken()) > 0 || len(second.Skipped) != 2 {
		t.Errorf("%v, writes %q, %+v", err, noting.Writes, second)
	}
}

// TestApplyStopsAfterManyRefusals checks that an Apply stops after maxRefusals.
func TestApplyStopsAfterManyRefusals(t *testing.T) {
	st := omnitest.NewFakeOmni()
	document := omnitest.ClusterDocument + omnitest.ControlPlaneDocument

	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"} {
		document += "---\nkind: Workers\nname: " + name + "\nmachineClass:\n  name: missing\n  size: 1\n"
	}

	refusing := &refusingSets{CoreState: st}

	result, err := Apply(t.Context(), state.WrapCore(refusing), mustPlan(t, st, document, Options{}), ApplyOptions{})
	if refusalOf(err) == nil || len(result.Refused) != maxRefusals || refusing.tried != maxRefusals {
		t.Errorf("%v: %d refusals, %d tried", err, len(result.Refused), refusing.tried)
	}
}

// refusingSets refuses every set that takes its machines from a class.
type refusingSets struct {
	state.CoreState

	tried int
}

// Create implements state.CoreState.
func (r *refusingSets) Create(ctx context.Context, item resource.Resource, options ...state.CreateOption) error {
	if set, ok := item.(*omnires.MachineSet); ok && set.TypedSpec().Value.GetMachineAllocation() != nil {
		r.tried++

		return errNoClass
	}

	return r.CoreState.Create(ctx, item, options...)
}
