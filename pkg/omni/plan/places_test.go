package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

const (
	machine4 = "44444444-4444-4444-8444-444444444444"
	// netPatch is a patch that keeps its ID wherever it is.
	netPatch = "patches:\n- {idOverride: 400-net, inline: {machine: {env: {A: \"1\"}}}}\n"
)

// workers returns a worker set with listed machines, and more lines.
func workers(name, machines string, more ...string) string {
	return "---\nkind: Workers\nname: " + name + "\nmachines: [" + machines + "]\n" + strings.Join(more, "")
}

// classWorkers returns a worker set of a machine class.
func classWorkers(name, size string, more ...string) string {
	return "---\nkind: Workers\nname: " + name + "\nmachineClass: {name: cpu, size: " + size + "}\n" + strings.Join(more, "")
}

// machine returns the document of a machine.
func machine(id string, more ...string) string {
	return "---\nkind: Machine\nname: " + id + "\n" + strings.Join(more, "")
}

// shownWith returns the lines of a plan, each with the change's kind in a rollout.
func shownWith(plan *Plan) []string {
	shown := lines(plan)
	for i, change := range plan.Changes {
		if change.Kind != KindFree {
			shown[i] = string(change.Kind) + ": " + shown[i]
		}
	}

	return shown
}

// TestPatchThatChangesItsPlace moves a patch under the same ID from one part of a cluster to another. Machines that are
// to leave keep it until they are gone, and no machine comes before its patch is there.
func TestPatchThatChangesItsPlace(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	ofCluster := omnitest.ClusterDocument + netPatch + omnitest.ControlPlaneDocument
	cpOf := func(id string) string {
		return omnitest.ClusterDocument + "---\nkind: ControlPlane\nmachines: [" + id + "]\n"
	}
	update := `update ConfigPatch "400-net"`

	for name, test := range map[string]struct {
		first, second string
		want          []string
	}{
		"with all machines of a set that is renamed": {
			base + workers("a", omnitest.Machine2, netPatch), base + workers("b", omnitest.Machine2, netPatch),
			[]string{
				`create MachineSet "demo-b" (none -> 1)`,
				`MachineRemoval: ! destroy MachineSetNode "` + omnitest.Machine2 + `"`,
				`MachineRemoval: ! destroy MachineSet "demo-a" (1 -> none)`,
				`? create MachineSetNode "` + omnitest.Machine2 + `"`,
				`? ` + update,
			},
		},
		"from a set that goes to one that stays": {
			base + workers("a", omnitest.Machine2, netPatch) + workers("c", omnitest.Machine3), base + workers("c", omnitest.Machine3, netPatch),
			[]string{`MachineRemoval: ! destroy MachineSet "demo-a" (1 -> none)`, `? ` + update},
		},
		"from a set without machines that goes": {
			base + workers("a", "", netPatch), base + workers("b", omnitest.Machine2, netPatch),
			[]string{
				update, `create MachineSet "demo-b" (none -> 1)`, `create MachineSetNode "` + omnitest.Machine2 + `"`,
				`MachineRemoval: ! destroy MachineSet "demo-a" (0 -> none)`,
			},
		},
		"from a set that goes to the cluster": {
			base + workers("a", omnitest.Machine2, netPatch), ofCluster,
			[]string{`MachineConfig: ` + update, `MachineRemoval: ! destroy MachineSet "demo-a" (1 -> none)`},
		},
		"from a set that stays to a new one": {
			base + workers("a", omnitest.Machine2, netPatch), base + workers("a", omnitest.Machine2) + workers("b", machine4, netPatch),
			[]string{`MachineConfig: ` + update, `create MachineSet "demo-b" (none -> 1)`, `create MachineSetNode "` + machine4 + `"`},
		},
		"from a set that a machine leaves": {
			base + workers("a", omnitest.Machine2+", "+omnitest.Machine3, netPatch) + workers("c", machine4),
			base + workers("a", omnitest.Machine2) + workers("c", machine4, netPatch),
			[]string{`MachineRemoval: ! destroy MachineSetNode "` + omnitest.Machine3 + `"`, `? ` + update},
		},
		"from a set that shrinks": {
			base + classWorkers("a", "3", netPatch) + workers("c", machine4), base + classWorkers("a", "2") + workers("c", machine4, netPatch),
			[]string{`MachineRemoval: ! update MachineSet "demo-a" (cpu/3 -> cpu/2)`, `? ` + update},
		},
		"from the cluster to a new set": {
			ofCluster + workers("a", omnitest.Machine2), base + workers("a", omnitest.Machine2) + workers("b", machine4, netPatch),
			[]string{`MachineConfig: ` + update, `create MachineSet "demo-b" (none -> 1)`, `create MachineSetNode "` + machine4 + `"`},
		},
		"from the cluster to a new set, in place of one that goes": {
			ofCluster + workers("a", omnitest.Machine2), base + workers("b", machine4, netPatch),
			[]string{
				`create MachineSet "demo-b" (none -> 1)`, `create MachineSetNode "` + machine4 + `"`,
				`MachineRemoval: ! destroy MachineSet "demo-a" (1 -> none)`, `? ` + update,
			},
		},
		"from the cluster to a set, as another one goes that has no machines": {
			ofCluster + workers("a", "") + workers("c", omnitest.Machine2), base + workers("c", omnitest.Machine2, netPatch),
			[]string{`MachineConfig: ` + update, `MachineRemoval: ! destroy MachineSet "demo-a" (0 -> none)`},
		},
		"from a set to a machine of it": {
			base + workers("a", omnitest.Machine2+", "+omnitest.Machine3, netPatch),
			base + workers("a", omnitest.Machine2+", "+omnitest.Machine3) + machine(omnitest.Machine2, netPatch),
			[]string{`MachineConfig: ` + update},
		},
		"from a machine to its set": {
			base + workers("a", omnitest.Machine2+", "+omnitest.Machine3) + machine(omnitest.Machine2, netPatch),
			base + workers("a", omnitest.Machine2+", "+omnitest.Machine3, netPatch),
			[]string{`MachineConfig: ` + update},
		},
		"from a machine to one that is not in the cluster yet": {
			base + workers("a", omnitest.Machine2) + machine(omnitest.Machine2, netPatch),
			base + workers("a", omnitest.Machine2+", "+machine4) + machine(machine4, netPatch),
			[]string{`MachineConfig: ` + update, `create MachineSetNode "` + machine4 + `"`},
		},
		"from a machine that goes to one that stays": {
			base + workers("a", omnitest.Machine2+", "+omnitest.Machine3) + machine(omnitest.Machine2, netPatch),
			base + workers("a", omnitest.Machine3) + machine(omnitest.Machine3, netPatch),
			[]string{`MachineRemoval: ! destroy MachineSetNode "` + omnitest.Machine2 + `"`, `? ` + update},
		},
		"from a machine of the control plane to another that stays": {
			cpOf(omnitest.Machine1+", "+omnitest.Machine2+", "+omnitest.Machine3) + machine(omnitest.Machine1, netPatch),
			cpOf(omnitest.Machine1+", "+omnitest.Machine2+", "+omnitest.Machine3) + machine(omnitest.Machine3, netPatch),
			[]string{`MachineConfig: ` + update},
		},
		"nowhere, with its machine, that goes to another set": {
			base + workers("a", omnitest.Machine2) + workers("c", omnitest.Machine3) + machine(omnitest.Machine2, netPatch),
			base + workers("a", "") + workers("c", omnitest.Machine3+", "+omnitest.Machine2) + machine(omnitest.Machine2, strings.Replace(netPatch, "1", "2", 1)),
			[]string{
				`MachineConfig: ` + update,
				`MachineRemoval: ! destroy MachineSetNode "` + omnitest.Machine2 + `"`,
				`? create MachineSetNode "` + omnitest.Machine2 + `"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.first)

			plan := mustPlan(t, st, test.second, Options{Rollout: true})
			if diff := cmp.Diff(test.want, shownWith(plan)); diff != "" {
				t.Error(diff)
			}

			if got := mustPlan(t, st, test.second, Options{}); got.Hash != HashOf(plan.Changes) {
				t.Errorf("the hash is %q, want that of what is destroyed: %q", got.Hash, HashOf(plan.Changes))
			}
		})
	}
}

// TestSettingsBeforeMachines adds a machine, and changes what configures it in the same plan: Omni may begin to install it as soon as it is
// in its set.
func TestSettingsBeforeMachines(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	edited := func(patch string) string { return strings.Replace(patch, "\"1\"", "\"2\"", 1) }
	ofCluster := func(patch string) string { return omnitest.ClusterDocument + patch + omnitest.ControlPlaneDocument }
	update, joins := `update ConfigPatch "400-net"`, `create MachineSetNode "`+machine4+`"`

	for name, test := range map[string]struct {
		first, second string
		want          []string
	}{
		"of the machine": {
			base + workers("a", omnitest.Machine2),
			base + workers("a", omnitest.Machine2+", "+machine4) + machine(machine4, netPatch),
			[]string{`create ConfigPatch "400-net"`, joins},
		},
		"of its set": {
			base + workers("a", omnitest.Machine2, netPatch), base + workers("a", omnitest.Machine2+", "+machine4, edited(netPatch)),
			[]string{update, joins},
		},
		"of the cluster": {
			ofCluster(netPatch) + workers("a", omnitest.Machine2), ofCluster(edited(netPatch)) + workers("a", omnitest.Machine2+", "+machine4),
			[]string{update, joins},
		},
		"of the cluster, and machines of a class": {
			ofCluster(netPatch), ofCluster(edited(netPatch)) + classWorkers("a", "2"),
			[]string{update, `create MachineSet "demo-a" (none -> cpu/2)`},
		},
		"kernel arguments": {
			base + workers("a", omnitest.Machine2),
			base + workers("a", omnitest.Machine2+", "+machine4) + machine(machine4, "kernelArgs: [console=ttyS0]\n"),
			[]string{`create KernelArgs "` + machine4 + `"`, joins},
		},
		"of another set": {
			base + workers("a", omnitest.Machine2, netPatch) + workers("b", omnitest.Machine3),
			base + workers("a", omnitest.Machine2, edited(netPatch)) + workers("b", omnitest.Machine3+", "+machine4),
			[]string{joins, update},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.first)

			if diff := cmp.Diff(test.want, lines(mustPlan(t, st, test.second, Options{}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPatchInTwoPlaces replaces machines by others and keeps the ID of their patch: neither may be without it, and one ID
// cannot be in two places. Nothing is done until the documents give each its own.
func TestPatchInTwoPlaces(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument

	for name, test := range map[string]struct {
		first, second string
		want          string
	}{
		"a set is replaced": {
			base + workers("a", omnitest.Machine2, netPatch), base + workers("b", machine4, netPatch),
			`ConfigPatch "400-net" is already in use in Omni by machines that are to leave (destroy MachineSet "demo-a" (1 -> none)), ` +
				`and machines that are to come (create MachineSetNode "` + machine4 + `") need it, too: give it another ID there, so that both have theirs`,
		},
		"a set is replaced by one of a class": {
			base + workers("a", omnitest.Machine2, netPatch), base + classWorkers("b", "2", netPatch),
			`leave (destroy MachineSet "demo-a" (1 -> none)), and machines that are to come (create MachineSet "demo-b" (none -> cpu/2))`,
		},
		"a set is replaced by more machines of another": {
			base + workers("a", omnitest.Machine2, netPatch) + classWorkers("c", "1"), base + classWorkers("c", "2", netPatch),
			`leave (destroy MachineSet "demo-a" (1 -> none)), and machines that are to come (update MachineSet "demo-c" (cpu/1 -> cpu/2))`,
		},
		"a set shrinks for another": {
			base + classWorkers("a", "3", netPatch), base + classWorkers("a", "2") + workers("b", machine4, netPatch),
			`leave (update MachineSet "demo-a" (cpu/3 -> cpu/2)), and machines that are to come (create MachineSetNode "` + machine4 + `")`,
		},
		"a machine of a set is replaced": {
			base + workers("a", omnitest.Machine2) + machine(omnitest.Machine2, netPatch), base + workers("a", machine4) + machine(machine4, netPatch),
			`leave (destroy MachineSetNode "` + omnitest.Machine2 + `"), and machines that are to come (create MachineSetNode "` + machine4 + `")`,
		},
		"the machine of the control plane is replaced": {
			base + machine(omnitest.Machine1, netPatch), strings.Replace(base, omnitest.Machine1, machine4, 1) + machine(machine4, netPatch),
			`leave (destroy MachineSetNode "` + omnitest.Machine1 + `"), and machines that are to come (create MachineSetNode "` + machine4 + `")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.first)

			_, err := Sync(t.Context(), st, mustLoad(t, test.second), Options{})
			if !errors.Is(err, omni.ErrCollision) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}

			// With an ID of its own it is an ordinary plan.
			other := mustPlan(t, st, strings.Replace(test.second, "400-net", "401-net", 1), Options{})
			if other.Hash == "" || len(other.WaitingForOmni) > 0 {
				t.Errorf("with another ID: %v", lines(other))
			}
		})
	}
}

// placeOfPatch returns the set that a patch is of, "cluster" if it is of none, "" if there is no such patch.
func placeOfPatch(t *testing.T, st state.State, id string) string {
	t.Helper()

	patch, err := st.Get(t.Context(), omnires.NewConfigPatch(id).Metadata())
	if state.IsNotFoundError(err) {
		return ""
	}

	if err != nil {
		t.Fatal(err)
	}

	if set, labelled := patch.Metadata().Labels().Get(omnires.LabelMachineSet); labelled {
		return set
	}

	return "cluster"
}

// TestPatchFollowsItsMachines renames a set step by step: the patch stays until the set is gone, though its destruction is
// approved, and is in its new place before the machine is.
func TestPatchFollowsItsMachines(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	renamed := base + workers("b", omnitest.Machine2, netPatch)

	st := omnitest.NewFakeOmni()
	mustSync(t, st, base+workers("a", omnitest.Machine2, netPatch))

	set := omnitest.SetNamed("demo", "a")
	if err := st.AddFinalizer(t.Context(), set.Metadata(), "MachineSetController"); err != nil {
		t.Fatal(err)
	}

	apply := func(want string) {
		t.Helper()

		noting := &omnitest.RefusingOmni{CoreState: st}

		if _, err := Apply(t.Context(), state.WrapCore(noting), mustPlan(t, st, renamed, Options{}), ApplyOptions{Consent: EveryChange}); err != nil {
			t.Fatal(err)
		}

		if got := strings.Join(noting.Writes, ", "); got != want {
			t.Errorf("wrote %s\nwant  %s", got, want)
		}
	}

	node := "MachineSetNode " + omnitest.Machine2

	apply("create MachineSet demo-b, teardown " + node + ", destroy " + node + ", teardown MachineSet demo-a")
	apply("") // the machine could join the new set, but Omni has not finished with the old one

	if got := placeOfPatch(t, st, "400-net"); got != "demo-a" {
		t.Errorf("while the set goes the patch is in %q", got)
	}

	waiting := mustPlan(t, st, renamed, Options{}).WaitingForOmni
	if len(waiting) != 2 || waiting[0].Reason != `ConfigPatch "400-net" has to be there first` ||
		waiting[1].Reason != `machines that are to leave keep it until they are gone (destroy MachineSet "demo-a" (0 -> none)); with another ID it need not wait` {
		t.Errorf("%+v", waiting)
	}

	if err := st.RemoveFinalizer(t.Context(), set.Metadata(), "MachineSetController"); err != nil {
		t.Fatal(err)
	}

	apply("destroy MachineSet demo-a")
	apply("update ConfigPatch 400-net, create " + node)

	if got := placeOfPatch(t, st, "400-net"); got != "demo-b" {
		t.Errorf("at the end the patch is in %q", got)
	}
}

// TestPatchThatOmniDestroysWithItsSet: Omni removes what a set has after its machines. No machine of the new place comes
// in between.
func TestPatchThatOmniDestroysWithItsSet(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument

	st := omnitest.NewFakeOmni()
	mustSync(t, st, base+workers("a", omnitest.Machine2, netPatch))

	patch, err := st.Get(t.Context(), omnires.NewConfigPatch("400-net").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	for _, item := range []resource.Resource{omnitest.SetNamed("demo", "a"), patch} {
		if err := st.AddFinalizer(t.Context(), item.Metadata(), "controller"); err != nil {
			t.Fatal(err)
		}

		omnitest.TearDown(t, st, item)
	}

	want := []string{
		`create MachineSet "demo-b" (none -> 1)`,
		`destroy ConfigPatch "400-net" ...`, `! destroy MachineSet "demo-a" (1 -> none) ...`,
		`? update ConfigPatch "400-net"`, `? create MachineSetNode "` + machine4 + `"`,
	}
	if diff := cmp.Diff(want, lines(mustPlan(t, st, base+workers("b", machine4, netPatch), Options{}))); diff != "" {
		t.Error(diff)
	}
}

// TestPatchOfAMachineWhoseSetGoes: the machines of a set that goes keep what is theirs alone, too, and what others get from
// there is waited for: Omni has begun, so nothing else can be chosen.
func TestPatchOfAMachineWhoseSetGoes(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument + workers("c", omnitest.Machine3)

	st := omnitest.NewFakeOmni()
	mustSync(t, st, base+workers("a", omnitest.Machine2)+machine(omnitest.Machine2, netPatch))
	omnitest.TearDown(t, st, omnitest.SetNamed("demo", "a"))

	going := `! destroy MachineSet "demo-a" (1 -> none) ...`

	for second, want := range map[string][]string{
		base + machine(omnitest.Machine3, netPatch):                                           {going, `? update ConfigPatch "400-net"`},
		base + workers("b", machine4, netPatch):                                               {`create MachineSet "demo-b" (none -> 1)`, going, `? create MachineSetNode "` + machine4 + `"`, `? update ConfigPatch "400-net"`},
		base + classWorkers("b", "2", netPatch):                                               {going, `? create MachineSet "demo-b" (none -> cpu/2)`, `? update ConfigPatch "400-net"`},
		strings.Replace(base, omnitest.ClusterDocument, omnitest.ClusterDocument+netPatch, 1): {`update ConfigPatch "400-net"`, going},
	} {
		if diff := cmp.Diff(want, lines(mustPlan(t, st, second, Options{}))); diff != "" {
			t.Errorf("%s: %s", second, diff)
		}
	}
}

// TestMachinesWaitForAPatchOfARollout checks that a patch that waits for its turn holds back the machines that would come
// without it, and no others.
func TestMachinesWaitForAPatchOfARollout(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	ofCluster := omnitest.ClusterDocument + netPatch + omnitest.ControlPlaneDocument

	for name, test := range map[string]struct {
		first, second string
		applied       []string
	}{
		"a new set": {
			base + workers("a", omnitest.Machine2, netPatch), base + workers("a", omnitest.Machine2) + workers("b", machine4, netPatch) + workers("c", omnitest.Machine3),
			[]string{"create MachineSet demo-b", "create MachineSet demo-c", "create MachineSetNode " + omnitest.Machine3},
		},
		"a new set of a class": {
			base + workers("a", omnitest.Machine2, netPatch), base + workers("a", omnitest.Machine2) + classWorkers("b", "2", netPatch), nil,
		},
		"a new set, from the cluster, which has it already": {
			ofCluster + workers("a", omnitest.Machine2), base + workers("a", omnitest.Machine2) + workers("b", machine4, netPatch),
			[]string{"create MachineSet demo-b", "create MachineSetNode " + machine4},
		},
		"a machine": {
			base + workers("a", omnitest.Machine2) + machine(omnitest.Machine2, netPatch),
			base + workers("a", omnitest.Machine2+", "+machine4+", "+omnitest.Machine3) + machine(machine4, netPatch),
			[]string{"create MachineSetNode " + omnitest.Machine3},
		},
		"the cluster": {
			base + workers("a", omnitest.Machine2, netPatch), ofCluster + workers("a", omnitest.Machine2+", "+machine4) + workers("b", omnitest.Machine3),
			[]string{"create MachineSet demo-b", "create MachineSetNode " + machine4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.first)

			noting := &omnitest.RefusingOmni{CoreState: st}
			plan := mustPlan(t, st, test.second, Options{Rollout: true})
			options := ApplyOptions{Consent: EveryChange, Admit: func(change Change) bool { return change.Kind == KindFree }}

			result, err := Apply(t.Context(), state.WrapCore(noting), plan, options)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.applied, noting.Writes); diff != "" {
				t.Errorf("%s\nheld: %v", diff, result.Held)
			}

			options.Admit = nil
			if _, err = Apply(t.Context(), st, mustPlan(t, st, test.second, Options{Rollout: true}), options); err != nil {
				t.Fatal(err)
			}

			if left := mustPlan(t, st, test.second, Options{}); !left.Empty() {
				t.Errorf("left: %v", lines(left))
			}
		})
	}
}

// TestRefusedMoveOfAPatch checks that no machine comes into a place that Omni does not let the patch go to.
func TestRefusedMoveOfAPatch(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument

	st := omnitest.NewFakeOmni()
	mustSync(t, st, base+workers("a", omnitest.Machine2, netPatch))

	refusing := &omnitest.RefusingOmni{CoreState: st, Refuse: "400-net", With: errNoClass}
	plan := mustPlan(t, st, base+workers("a", omnitest.Machine2)+workers("b", machine4, netPatch), Options{})

	_, err := Apply(t.Context(), state.WrapCore(refusing), plan, ApplyOptions{Consent: EveryChange})
	if omni.Classify(err) != omni.ClassRefused {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"update ConfigPatch 400-net"}, refusing.Writes); diff != "" {
		t.Error(diff)
	}
}

// TestPatchOfAnAdoptedCluster checks that, like every destroy there, it takes an approval to take a patch from machines of
// a cluster that is being adopted, and that this is for one place to go to.
func TestPatchOfAnAdoptedCluster(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	two := func(ofA, ofB string) string {
		return base + workers("a", omnitest.Machine2, ofA) + workers("b", omnitest.Machine3, ofB)
	}
	adoption := Options{EveryDestroyIsDestructive: true}

	st := omnitest.NewFakeOmni()
	mustSync(t, st, two(netPatch, ""))

	toSet := mustPlan(t, st, two("", netPatch), adoption)
	if diff := cmp.Diff([]string{`! update ConfigPatch "400-net"`}, lines(toSet)); diff != "" || toSet.Hash == "" {
		t.Fatal(diff)
	}

	if reason := toSet.Changes[0].Reason; reason != "takes it from machines that had it before the cluster was adopted" {
		t.Error(reason)
	}

	if other := mustPlan(t, st, two("", "")+machine(omnitest.Machine3, netPatch), adoption); other.Hash == "" || other.Hash == toSet.Hash {
		t.Errorf("to a set the hash is %q, to a machine %q", toSet.Hash, other.Hash)
	}

	for name, harmless := range map[string]string{
		"to all machines": strings.Replace(two("", ""), omnitest.ClusterDocument, omnitest.ClusterDocument+netPatch, 1),
		"another content": two(strings.Replace(netPatch, "1", "2", 1), ""),
	} {
		if plan := mustPlan(t, st, harmless, adoption); plan.Hash != "" || len(plan.Changes) != 1 {
			t.Errorf("%s: %v", name, lines(plan))
		}
	}
}

// TestMoveThatWaitsNeedsNoConsentYet: in an adoption a patch that waits for machines to leave is no change that is made, so
// neither the hash nor the count of what destroys has it. It needs consent when they are gone.
func TestMoveThatWaitsNeedsNoConsentYet(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument

	st := omnitest.NewFakeOmni()
	mustSync(t, st, base+workers("a", omnitest.Machine2+", "+omnitest.Machine3, netPatch)+workers("c", machine4))

	plan := mustPlan(t, st, base+workers("a", omnitest.Machine2)+workers("c", machine4, netPatch), Options{EveryDestroyIsDestructive: true})
	want := []string{`! destroy MachineSetNode "` + omnitest.Machine3 + `"`, `? update ConfigPatch "400-net"`}

	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Fatal(diff)
	}

	if plan.Hash != HashOf(plan.Changes) {
		t.Errorf("the hash is %q, want that of what is destroyed: %q", plan.Hash, HashOf(plan.Changes))
	}

	if waiting := plan.WaitingForOmni[0]; waiting.Destructive || waiting.Version != "" || waiting.Members != "" {
		t.Errorf("%+v", waiting)
	}
}
