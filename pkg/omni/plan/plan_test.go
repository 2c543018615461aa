package plan

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/test/mirrortest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// mustLoad reads a template that Omni accepts.
func mustLoad(t *testing.T, document string) *Template {
	t.Helper()

	template, err := Load([]byte(document))
	if err != nil {
		t.Fatal(err)
	}

	return template
}

// mustPlan makes a plan and applies nothing.
func mustPlan(t *testing.T, st state.State, document string, options Options) *Plan {
	t.Helper()

	plan, err := Sync(t.Context(), st, mustLoad(t, document), options)
	if err != nil {
		t.Fatal(err)
	}

	return plan
}

// mustSync makes a state match a template.
func mustSync(t *testing.T, st state.State, document string) {
	t.Helper()

	if _, err := Apply(t.Context(), st, mustPlan(t, st, document, Options{}), ApplyOptions{Consent: EveryChange}); err != nil {
		t.Fatal(err)
	}
}

// lines returns the lines of a plan: "!" marks a destructive change, "..." one that has begun, "?" one that waits.
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

	for _, change := range plan.WaitingForOmni {
		shown = append(shown, "? "+change.String())
	}

	return shown
}

func TestPlanCreates(t *testing.T) {
	st := omnitest.NewFakeOmni()
	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})

	want := []string{
		`create Cluster "demo"`,
		`create MachineSet "demo-control-planes" (none -> 1)`,
		`create MachineSet "demo-workers" (none -> 2)`,
		`create MachineSetNode "` + omnitest.Machine1 + `"`,
		`create MachineSetNode "` + omnitest.Machine2 + `"`,
		`create MachineSetNode "` + omnitest.Machine3 + `"`,
	}
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Error(diff)
	}

	if plan.Hash != "" || plan.Cluster != "demo" || plan.Empty() || plan.Count(ActionCreate) != 6 || plan.Count(ActionDestroy) != 0 {
		t.Errorf("plan %+v", plan)
	}

	mustSync(t, st, omnitest.FullTemplate)

	if plan = mustPlan(t, st, omnitest.FullTemplate, Options{}); !plan.Empty() || plan.Hash != "" {
		t.Errorf("after the sync: %v", lines(plan))
	}
}

// Every case starts from a synced first template and plans the second.
func TestPlanChanges(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument

	for name, test := range map[string]struct {
		first, second string
		prepare       func(t *testing.T, st *omnitest.FakeOmni)
		options       Options
		want          []string
		hash          bool
	}{
		"a version": {
			first: omnitest.FullTemplate, second: strings.Replace(omnitest.FullTemplate, "v1.35.0", "v1.35.1", 1),
			want: []string{`update Cluster "demo"`},
		},
		"a machine less": {
			first: omnitest.FullTemplate, second: strings.Replace(omnitest.FullTemplate, "- "+omnitest.Machine3+"\n", "", 1),
			want: []string{`! destroy MachineSetNode "` + omnitest.Machine3 + `"`}, hash: true,
		},
		"a set less": {
			first: omnitest.FullTemplate, second: base,
			want: []string{`! destroy MachineSet "demo-workers" (2 -> none)`}, hash: true,
		},
		"a machine moves": {
			first:  omnitest.FullTemplate,
			second: base + "---\nkind: Workers\nname: workers\nmachines:\n- " + omnitest.Machine2 + "\n---\nkind: Workers\nname: more\nmachines:\n- " + omnitest.Machine3 + "\n",
			want: []string{
				`create MachineSet "demo-more" (none -> 1)`,
				`! destroy MachineSetNode "` + omnitest.Machine3 + `"`,
				`? create MachineSetNode "` + omnitest.Machine3 + `"`,
			},
			hash: true,
		},
		"a class set grows": {
			first: base + omnitest.ClassDocument("cpu", "2"), second: base + omnitest.ClassDocument("cpu", "5"),
			want: []string{`update MachineSet "demo-workers" (cpu/2 -> cpu/5)`},
		},
		"a class set shrinks": {
			first: base + omnitest.ClassDocument("cpu", "5"), second: base + omnitest.ClassDocument("cpu", "0"),
			want: []string{`! update MachineSet "demo-workers" (cpu/5 -> cpu/0)`}, hash: true,
		},
		"another class": {
			first: base + omnitest.ClassDocument("cpu", "2"), second: base + omnitest.ClassDocument("gpu", "2"),
			want: []string{`! update MachineSet "demo-workers" (cpu/2 -> gpu/2)`}, hash: true,
		},
		"unlimited to a number": {
			first: base + omnitest.ClassDocument("cpu", "unlimited"), second: base + omnitest.ClassDocument("cpu", "9"),
			want: []string{`! update MachineSet "demo-workers" (cpu/unlimited -> cpu/9)`}, hash: true,
		},
		"a number to unlimited": {
			first: base + omnitest.ClassDocument("cpu", "9"), second: base + omnitest.ClassDocument("cpu", "unlimited"),
			want: []string{`update MachineSet "demo-workers" (cpu/9 -> cpu/unlimited)`},
		},
		"machines to a class": {
			first: omnitest.FullTemplate, second: base + omnitest.ClassDocument("cpu", "2"),
			want: []string{
				`update MachineSet "demo-workers" (2 -> cpu/2)`,
				`! destroy MachineSetNode "` + omnitest.Machine2 + `"`, `! destroy MachineSetNode "` + omnitest.Machine3 + `"`,
			},
			hash: true,
		},
		"a class to machines": {
			first: base + omnitest.ClassDocument("cpu", "2"), second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) {
				// Omni itself put one of the machines into the set.
				node := omnitest.Labelled(omnires.NewMachineSetNode(omnitest.Machine2, omnitest.SetNamed("demo", "workers")), "demo")
				node.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")

				if err := st.Create(t.Context(), node, state.WithCreateOwner("MachineSetNodeController")); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{
				`create MachineSetNode "` + omnitest.Machine3 + `"`,
				`! update MachineSet "demo-workers" (cpu/2 -> 2)`,
				`? create MachineSetNode "` + omnitest.Machine2 + `"`,
			},
			hash: true,
		},
		"a patch less": {
			first: strings.Replace(omnitest.FullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), second: omnitest.FullTemplate,
			want: []string{`destroy ConfigPatch "200-cluster-demo-a"`},
		},
		"a patch less, after adoption": {
			first: strings.Replace(omnitest.FullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), second: omnitest.FullTemplate,
			options: Options{EveryDestroyIsDestructive: true},
			want:    []string{`! destroy ConfigPatch "200-cluster-demo-a"`}, hash: true,
		},
		"a patch more": {
			first: omnitest.FullTemplate, second: strings.Replace(strings.Replace(omnitest.FullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), "v1.35.0", "v1.35.1", 1),
			want: []string{`create ConfigPatch "200-cluster-demo-a"`, `update Cluster "demo"`},
		},
		"a patch more, when the mark has to be put on": {
			first: omnitest.FullTemplate, second: strings.Replace(strings.Replace(omnitest.FullTemplate, "talos:", "patches:\n- name: a\n  inline:\n    machine:\n      network:\n        hostname: x\ntalos:", 1), "v1.35.0", "v1.35.1", 1),
			options: Options{ClusterFirst: true},
			want:    []string{`update Cluster "demo"`, `create ConfigPatch "200-cluster-demo-a"`},
		},
		"a stranger's resource": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.MustCreate(t, st, omnitest.Labelled(omnires.NewConfigPatch("by-hand"), "demo"))
			},
			want: []string{`destroy ConfigPatch "by-hand"`},
		},
		"Omni's own resource": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) {
				if err := st.Create(t.Context(), omnitest.Labelled(omnires.NewConfigPatch("system"), "demo"), state.WithCreateOwner("SomeController")); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{},
		},
		"another cluster's resource": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.MustCreate(t, st, omnitest.Labelled(omnires.NewConfigPatch("theirs"), "other"))
			},
			want: []string{},
		},
		"someone changed our mark": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.MustChange(t, st, omnires.NewCluster("demo"), func(c *omnires.Cluster) { c.Metadata().Annotations().Delete("omni.texashpc.com/owner-uid") })
			},
			want: []string{`update Cluster "demo"`},
		},
		"a machine locked in Omni": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) { omnitest.LockMachine(t, st, omnitest.Machine2) },
			want:    []string{},
		},
		"a machine locked in Omni that a document unlocks": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate + "---\nkind: Machine\nname: " + omnitest.Machine2 + "\n",
			prepare: func(t *testing.T, st *omnitest.FakeOmni) { omnitest.LockMachine(t, st, omnitest.Machine2) },
			want:    []string{`update MachineSetNode "` + omnitest.Machine2 + `"`},
		},
		"a machine that a document locks": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate + "---\nkind: Machine\nname: " + omnitest.Machine2 + "\nlocked: true\n",
			want: []string{`update MachineSetNode "` + omnitest.Machine2 + `"`},
		},
		"a locked machine with another change": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate + "---\nkind: Machine\nname: " + omnitest.Machine3 + "\nlabels:\n  x: y\n",
			prepare: func(t *testing.T, st *omnitest.FakeOmni) { omnitest.LockMachine(t, st, omnitest.Machine2) },
			want:    []string{`update MachineSetNode "` + omnitest.Machine3 + `"`},
		},
		"a cluster locked in Omni": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) { omnitest.LockCluster(t, st) },
			want:    []string{},
		},
		"what is being torn down is finished": {
			first: omnitest.FullTemplate, second: base,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.TearDown(t, st, omnitest.SetNamed("demo", "workers"))
			},
			want: []string{`! destroy MachineSet "demo-workers" (2 -> none) ...`},
		},
		"what is being torn down has to go before it comes back": {
			first: omnitest.FullTemplate, second: omnitest.FullTemplate,
			prepare: func(t *testing.T, st *omnitest.FakeOmni) {
				omnitest.TearDown(t, st, omnitest.SetNamed("demo", "workers"))
			},
			want: []string{
				`! destroy MachineSet "demo-workers" (2 -> none) ...`,
				`? update MachineSet "demo-workers"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
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
	source := omnitest.NewFakeOmni()
	mustSync(t, source, omnitest.FullTemplate)
	omnitest.MustCreate(t, source, omnitest.Labelled(omnires.NewConfigPatch("by-hand"), "demo"), omnitest.Labelled(omnires.NewConfigPatch("theirs"), "other"))

	m := mirrortest.Start(t, source, mirror.Options{})
	document := strings.Replace(omnitest.FullTemplate, "- "+omnitest.Machine3+"\n", "", 1)

	direct, copied := mustPlan(t, source, document, Options{}), mustPlan(t, m.State(), document, Options{})

	if diff := cmp.Diff(lines(direct), lines(copied)); diff != "" {
		t.Error(diff)
	}

	if direct.Hash != copied.Hash || direct.Hash == "" {
		t.Errorf("hashes %q and %q", direct.Hash, copied.Hash)
	}
}
