package omni

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// mustPlan plans and applies nothing.
func mustPlan(t *testing.T, st state.State, document string, options PlanOptions) *Plan {
	t.Helper()

	plan, err := PlanSync(t.Context(), st, []byte(document), options)
	if err != nil {
		t.Fatal(err)
	}

	return plan
}

// mustSync brings a state to what a template says.
func mustSync(t *testing.T, st state.State, document string) {
	t.Helper()

	if _, err := ApplyPlan(t.Context(), st, mustPlan(t, st, document, PlanOptions{}), ApplyOptions{Leave: EveryChange}); err != nil {
		t.Fatal(err)
	}
}

// lines shows a plan: "!" marks what is destructive, "..." what is already begun, "?" what waits.
func lines(plan *Plan) []string {
	shown := []string{}

	for _, change := range plan.Changes {
		line := change.String()
		if change.Destructive {
			line = "! " + line
		}

		if change.TearingDown {
			line += " ..."
		}

		shown = append(shown, line)
	}

	for _, change := range plan.Waiting {
		shown = append(shown, "? "+change.String())
	}

	return shown
}

func TestPlanCreates(t *testing.T) {
	st := newFakeOmni()
	plan := mustPlan(t, st, fullTemplate, PlanOptions{})

	want := []string{
		`create Cluster "demo"`,
		`create MachineSet "demo-control-planes" (none -> 1)`,
		`create MachineSet "demo-workers" (none -> 2)`,
		`create MachineSetNode "` + machine1 + `"`,
		`create MachineSetNode "` + machine2 + `"`,
		`create MachineSetNode "` + machine3 + `"`,
	}
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Error(diff)
	}

	if plan.Hash != "" || plan.Cluster != "demo" || plan.Empty() || plan.Count(ActionCreate) != 6 || plan.Count(ActionDestroy) != 0 {
		t.Errorf("plan %+v", plan)
	}

	mustSync(t, st, fullTemplate)

	if plan = mustPlan(t, st, fullTemplate, PlanOptions{}); !plan.Empty() || plan.Hash != "" {
		t.Errorf("after the sync: %v", lines(plan))
	}
}

// Every row starts from a synced first template and plans the second.
func TestPlanChanges(t *testing.T) {
	base := clusterDocument + controlPlaneDocument

	for name, test := range map[string]struct {
		first, second string
		prepare       func(t *testing.T, st *fakeOmni)
		options       PlanOptions
		want          []string
		hash          bool
	}{
		"a version": {
			first: fullTemplate, second: strings.Replace(fullTemplate, "v1.35.0", "v1.35.1", 1),
			want: []string{`update Cluster "demo"`},
		},
		"a machine less": {
			first: fullTemplate, second: strings.Replace(fullTemplate, "- "+machine3+"\n", "", 1),
			want: []string{`! destroy MachineSetNode "` + machine3 + `"`}, hash: true,
		},
		"a set less": {
			first: fullTemplate, second: base,
			want: []string{`! destroy MachineSet "demo-workers" (2 -> none)`}, hash: true,
		},
		"a machine moves": {
			first:  fullTemplate,
			second: base + "---\nkind: Workers\nname: workers\nmachines:\n- " + machine2 + "\n---\nkind: Workers\nname: more\nmachines:\n- " + machine3 + "\n",
			want: []string{
				`create MachineSet "demo-more" (none -> 1)`,
				`! destroy MachineSetNode "` + machine3 + `"`,
				`? create MachineSetNode "` + machine3 + `"`,
			},
			hash: true,
		},
		"a class set grows": {
			first: base + classDocument("cpu", "2"), second: base + classDocument("cpu", "5"),
			want: []string{`update MachineSet "demo-workers" (cpu/2 -> cpu/5)`},
		},
		"a class set shrinks": {
			first: base + classDocument("cpu", "5"), second: base + classDocument("cpu", "0"),
			want: []string{`! update MachineSet "demo-workers" (cpu/5 -> cpu/0)`}, hash: true,
		},
		"another class": {
			first: base + classDocument("cpu", "2"), second: base + classDocument("gpu", "2"),
			want: []string{`! update MachineSet "demo-workers" (cpu/2 -> gpu/2)`}, hash: true,
		},
		"unlimited to a number": {
			first: base + classDocument("cpu", "unlimited"), second: base + classDocument("cpu", "9"),
			want: []string{`! update MachineSet "demo-workers" (cpu/unlimited -> cpu/9)`}, hash: true,
		},
		"a number to unlimited": {
			first: base + classDocument("cpu", "9"), second: base + classDocument("cpu", "unlimited"),
			want: []string{`update MachineSet "demo-workers" (cpu/9 -> cpu/unlimited)`},
		},
		"machines to a class": {
			first: fullTemplate, second: base + classDocument("cpu", "2"),
			want: []string{
				`update MachineSet "demo-workers" (2 -> cpu/2)`,
				`! destroy MachineSetNode "` + machine2 + `"`, `! destroy MachineSetNode "` + machine3 + `"`,
			},
			hash: true,
		},
		"a class to machines": {
			first: base + classDocument("cpu", "2"), second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) {
				// Omni itself put one of the machines into the set.
				node := labelled(omnires.NewMachineSetNode(machine2, setNamed("demo", "workers")), "demo")
				node.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")

				if err := st.Create(t.Context(), node, state.WithCreateOwner("MachineSetNodeController")); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{
				`create MachineSetNode "` + machine3 + `"`,
				`! update MachineSet "demo-workers" (cpu/2 -> 2)`,
				`? create MachineSetNode "` + machine2 + `"`,
			},
			hash: true,
		},
		"a patch less": {
			first: strings.Replace(fullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), second: fullTemplate,
			want: []string{`destroy ConfigPatch "200-cluster-demo-a"`},
		},
		"a patch less, after adoption": {
			first: strings.Replace(fullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), second: fullTemplate,
			options: PlanOptions{EveryDestroyIsDestructive: true},
			want:    []string{`! destroy ConfigPatch "200-cluster-demo-a"`}, hash: true,
		},
		"a patch more": {
			first: fullTemplate, second: strings.Replace(strings.Replace(fullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), "v1.35.0", "v1.35.1", 1),
			want: []string{`create ConfigPatch "200-cluster-demo-a"`, `update Cluster "demo"`},
		},
		"a patch more, when the mark has to be put on": {
			first: fullTemplate, second: strings.Replace(strings.Replace(fullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), "v1.35.0", "v1.35.1", 1),
			options: PlanOptions{ClusterFirst: true},
			want:    []string{`update Cluster "demo"`, `create ConfigPatch "200-cluster-demo-a"`},
		},
		"a stranger's resource": {
			first: fullTemplate, second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) {
				mustCreate(t, st, labelled(omnires.NewConfigPatch("by-hand"), "demo"))
			},
			want: []string{`destroy ConfigPatch "by-hand"`},
		},
		"Omni's own resource": {
			first: fullTemplate, second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) {
				if err := st.Create(t.Context(), labelled(omnires.NewConfigPatch("system"), "demo"), state.WithCreateOwner("SomeController")); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{},
		},
		"another cluster's resource": {
			first: fullTemplate, second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) {
				mustCreate(t, st, labelled(omnires.NewConfigPatch("theirs"), "other"))
			},
			want: []string{},
		},
		"someone changed our mark": {
			first: fullTemplate, second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) {
				mustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Delete("omni.texashpc.com/owner-uid") })
			},
			want: []string{`update Cluster "demo"`},
		},
		"a machine locked in Omni": {
			first: fullTemplate, second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) { lockMachine(t, st, machine2) },
			want:    []string{},
		},
		"a machine locked in Omni that a document unlocks": {
			first: fullTemplate, second: fullTemplate + "---\nkind: Machine\nname: " + machine2 + "\n",
			prepare: func(t *testing.T, st *fakeOmni) { lockMachine(t, st, machine2) },
			want:    []string{`update MachineSetNode "` + machine2 + `"`},
		},
		"a machine that a document locks": {
			first: fullTemplate, second: fullTemplate + "---\nkind: Machine\nname: " + machine2 + "\nlocked: true\n",
			want: []string{`update MachineSetNode "` + machine2 + `"`},
		},
		"a locked machine with another change": {
			first: fullTemplate, second: fullTemplate + "---\nkind: Machine\nname: " + machine3 + "\nlabels:\n  x: y\n",
			prepare: func(t *testing.T, st *fakeOmni) { lockMachine(t, st, machine2) },
			want:    []string{`update MachineSetNode "` + machine3 + `"`},
		},
		"a cluster locked in Omni": {
			first: fullTemplate, second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) { lockCluster(t, st) },
			want:    []string{},
		},
		"what is being torn down is finished": {
			first: fullTemplate, second: base,
			prepare: func(t *testing.T, st *fakeOmni) { tearDown(t, st, setNamed("demo", "workers")) },
			want:    []string{`! destroy MachineSet "demo-workers" (2 -> none) ...`},
		},
		"what is being torn down has to go before it comes back": {
			first: fullTemplate, second: fullTemplate,
			prepare: func(t *testing.T, st *fakeOmni) { tearDown(t, st, setNamed("demo", "workers")) },
			want: []string{
				`! destroy MachineSet "demo-workers" (2 -> none) ...`,
				`? update MachineSet "demo-workers"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := newFakeOmni()
			mustSync(t, st, test.first)

			if test.prepare != nil {
				test.prepare(t, st)
			}

			plan := mustPlan(t, st, test.second, test.options)
			if diff := cmp.Diff(test.want, lines(plan)); diff != "" {
				t.Error(diff)
			}

			if (plan.Hash != "") != test.hash || (len(plan.Destructive()) > 0) != test.hash {
				t.Errorf("hash %q for %v", plan.Hash, plan.Destructive())
			}

			if plan.Empty() != (len(test.want) == 0) {
				t.Error("Empty is wrong")
			}

			if again := mustPlan(t, st, test.second, test.options); again.Hash != plan.Hash {
				t.Error("the hash is not stable")
			}
		})
	}
}

func TestPlanAgainstAMirrorEqualsPlanAgainstOmni(t *testing.T) {
	source := newFakeOmni()
	mustSync(t, source, fullTemplate)
	mustCreate(t, source, labelled(omnires.NewConfigPatch("by-hand"), "demo"), labelled(omnires.NewConfigPatch("theirs"), "other"))

	m := startMirror(t, source, MirrorOptions{})
	document := strings.Replace(fullTemplate, "- "+machine3+"\n", "", 1)

	direct, copied := mustPlan(t, source, document, PlanOptions{}), mustPlan(t, m.State(), document, PlanOptions{})

	if diff := cmp.Diff(lines(direct), lines(copied)); diff != "" {
		t.Error(diff)
	}

	if direct.Hash != copied.Hash || direct.Hash == "" {
		t.Errorf("hashes %q and %q", direct.Hash, copied.Hash)
	}
}
