package plan

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// runningTemplate has one of everything that affects running machines.
const runningTemplate = `kind: Cluster
name: demo
kubernetes: {version: v1.35.0}
talos: {version: v1.13.2}
systemExtensions: [siderolabs/hello]
patches:
- {name: all, inline: {machine: {env: {A: "1"}}}}
---
kind: ControlPlane
machines: [11111111-1111-4111-8111-111111111111]
---
kind: Workers
name: workers
machines: [22222222-2222-4222-8222-222222222222, 33333333-3333-4333-8333-333333333333]
patches:
- {name: set, inline: {machine: {env: {B: "1"}}}}
---
kind: Machine
name: 22222222-2222-4222-8222-222222222222
locked: true
install: {disk: /dev/sda}
kernelArgs: [quiet]
`

// kinds returns each change of a plan with its kind, "free" if it has none.
func kinds(plan *Plan) []string {
	var shown []string
	for _, change := range plan.Changes {
		shown = append(shown, cmp.Or(string(change.Kind), "free")+": "+change.String())
	}

	return shown
}

func TestKinds(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string // replaced in runningTemplate
		want     []string
	}{
		"versions and a label": {
			"name: demo\nkubernetes: {version: v1.35.0}\ntalos: {version: v1.13.2}",
			"name: demo\nlabels: {team: a}\nkubernetes: {version: v1.36.1}\ntalos: {version: v1.13.3}",
			[]string{
				`free: update Cluster "demo"`,
				`TalosVersion: update Cluster "demo" (TalosVersion v1.13.2 -> v1.13.3)`,
				`KubernetesVersion: update Cluster "demo" (KubernetesVersion v1.35.0 -> v1.36.1)`,
			},
		},
		"a version and a label": {
			"name: demo\nkubernetes: {version: v1.35.0}",
			"name: demo\nlabels: {team: a}\nkubernetes: {version: v1.36.1}",
			[]string{`free: update Cluster "demo"`, `KubernetesVersion: update Cluster "demo" (KubernetesVersion v1.35.0 -> v1.36.1)`},
		},
		"a version alone": {
			"v1.35.0", "v1.36.1", []string{`KubernetesVersion: update Cluster "demo" (KubernetesVersion v1.35.0 -> v1.36.1)`},
		},
		"a patch of the cluster": {`{A: "1"}`, `{A: "2"}`, []string{`MachineConfig: update ConfigPatch "200-cluster-demo-all"`}},
		"a patch of a set":       {`{B: "1"}`, `{B: "2"}`, []string{`MachineConfig: update ConfigPatch "400-demo-workers-set"`}},
		"an install disk":        {"/dev/sda", "/dev/sdb", []string{`MachineConfig: update ConfigPatch "000-cm-22222222-2222-4222-8222-222222222222-install-disk"`}},
		"a lock taken off":       {"locked: true", "locked: false", []string{`MachineConfig: update MachineSetNode "22222222-2222-4222-8222-222222222222"`}},
		"kernel arguments":       {"quiet", "debug", []string{`MachineImage: update KernelArgs "22222222-2222-4222-8222-222222222222"`}},
		"extensions": {
			"siderolabs/hello", "siderolabs/other", []string{`MachineImage: update ExtensionsConfiguration "schematic-demo"`},
		},
		"a machine that goes": {
			", 33333333-3333-4333-8333-333333333333]", "]", []string{`MachineRemoval: destroy MachineSetNode "33333333-3333-4333-8333-333333333333"`},
		},
		"a machine that comes, with its own patch": {
			", 33333333-3333-4333-8333-333333333333]\n", ", 33333333-3333-4333-8333-333333333333, 44444444-4444-4444-8444-444444444444]\n",
			[]string{`free: create MachineSetNode "44444444-4444-4444-8444-444444444444"`},
		},
		"a new set with a patch": {
			"---\nkind: Machine",
			"---\nkind: Workers\nname: more\nmachines: [44444444-4444-4444-8444-444444444444]\npatches:\n- {name: new, inline: {machine: {env: {C: \"1\"}}}}\n---\nkind: Machine",
			[]string{
				`free: create ConfigPatch "400-demo-more-new"`,
				`free: create MachineSet "demo-more" (none -> 1)`,
				`free: create MachineSetNode "44444444-4444-4444-8444-444444444444"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, runningTemplate)

			changed := strings.Replace(runningTemplate, test.old, test.new, 1)
			if changed == runningTemplate {
				t.Fatalf("%q is not in the template", test.old)
			}

			plan := mustPlan(t, st, changed, Options{Rollout: true})
			if diff := gocmp.Diff(test.want, kinds(plan)); diff != "" {
				t.Error(diff)
			}

			for _, change := range plan.Changes {
				if (change.Digest == "") != (change.Kind == KindFree) {
					t.Errorf("%s has the digest %q", change, change.Digest)
				}
			}

			// Without a rollout the Cluster has one update, unless both versions change.
			unsplit := mustPlan(t, st, changed, Options{})
			if slices.ContainsFunc(unsplit.Changes, func(change Change) bool { return change.Part != "" }) != (name == "versions and a label") {
				t.Errorf("without a rollout: %v", lines(unsplit))
			}
		})
	}
}

// TestKindsOfANewCluster checks that all changes of a new cluster are free: it has no machines yet that could be
// disturbed.
func TestKindsOfANewCluster(t *testing.T) {
	for _, line := range kinds(mustPlan(t, omnitest.NewFakeOmni(), runningTemplate, Options{Rollout: true})) {
		if !strings.HasPrefix(line, "free: ") {
			t.Error(line)
		}
	}
}

// TestDigests checks that a change keeps its digest while other things change, and gets another one when its content
// does.
func TestDigests(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, runningTemplate)

	digest := func(template string, kind v1alpha1.ChangeKind) string {
		t.Helper()

		for _, change := range mustPlan(t, st, template, Options{Rollout: true}).Changes {
			if change.Kind == kind {
				return change.Digest
			}
		}

		t.Fatalf("nothing of kind %s", kind)

		return ""
	}

	upgrade := strings.Replace(runningTemplate, "v1.35.0", "v1.36.1", 1)
	both := strings.Replace(upgrade, `{A: "1"}`, `{A: "2"}`, 1)
	newer := strings.Replace(both, "v1.36.1", "v1.36.2", 1)

	if digest(upgrade, v1alpha1.ChangeKubernetesVersion) != digest(both, v1alpha1.ChangeKubernetesVersion) {
		t.Error("a patch makes the version another change")
	}

	if digest(both, v1alpha1.ChangeKubernetesVersion) == digest(newer, v1alpha1.ChangeKubernetesVersion) {
		t.Error("two versions are one change")
	}

	if digest(both, v1alpha1.ChangeMachineConfig) != digest(newer, v1alpha1.ChangeMachineConfig) {
		t.Error("a version makes the patch another change")
	}

	if digest(both, v1alpha1.ChangeMachineConfig) == digest(strings.Replace(both, `{A: "2"}`, `{A: "3"}`, 1), v1alpha1.ChangeMachineConfig) {
		t.Error("two patches are one change")
	}

	// Writes of other changes do not change the digest of the rest.
	before := digest(both, v1alpha1.ChangeMachineConfig)

	_, err := Apply(t.Context(), st, mustPlan(t, st, both, Options{Rollout: true}), ApplyOptions{
		Consent: EveryChange, Admit: func(change Change) bool { return change.Kind == v1alpha1.ChangeKubernetesVersion },
	})
	if err != nil || before != digest(both, v1alpha1.ChangeMachineConfig) {
		t.Errorf("after the version was written: %v, %q, before %q", err, digest(both, v1alpha1.ChangeMachineConfig), before)
	}
}

// TestDigestsOutlastReleases pins what statuses keep across an upgrade of the controller: with other digests, changes that a policy
// holds would be new ones, and begin. See docs/development/releases.md.
func TestDigestsOutlastReleases(t *testing.T) {
	created := time.Unix(1_700_000_000, 0)

	patch := omnires.NewConfigPatch("200-cluster-demo-all")
	patch.Metadata().Labels().Set(omnires.LabelCluster, "demo")

	if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine: {env: {A: \"2\"}}\n")); err != nil {
		t.Fatal(err)
	}

	set := omnires.NewMachineSet("demo-w")
	set.TypedSpec().Value.UpdateStrategy = specs.MachineSetSpec_Rolling

	for want, made := range map[string]step{
		"bd929cb4cfbd4d0ed274d07605922a0f": {
			change: Change{Kind: v1alpha1.ChangeKubernetesVersion, Action: ActionUpdate, Type: omnires.ClusterType, ID: "demo", Created: created, Part: v1alpha1.ChangeKubernetesVersion, To: "1.36.1"},
			new:    omnires.NewCluster("demo"),
		},
		"4c47e0293ac69a810051ca0dbbe859df": {change: Change{Kind: v1alpha1.ChangeMachineConfig, Action: ActionUpdate, Type: omnires.ConfigPatchType, ID: patch.Metadata().ID(), Created: created}, new: patch},
		"8bc30e5885633352aadfac6491ef77fd": {change: Change{Kind: v1alpha1.ChangeMachineConfig, Action: ActionUpdate, Type: omnires.MachineSetType, ID: "demo-w", Created: created}, new: set},
		"55ba56b82c4db76796aa82f49a0c338b": {change: Change{Kind: v1alpha1.ChangeMachineConfig, Action: ActionDestroy, Type: omnires.ConfigPatchType, ID: "p", Created: created}},
	} {
		if got := digestOf(made); got != want {
			t.Errorf("%s: got %s, want %s", made.change, got, want)
		}
	}
}
