package plan

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

const (
	kubernetesWaits = "Kubernetes v1.36.1 waits until Omni has finished the Talos upgrade"
	talosWaits      = "Talos v1.13.3 waits until Omni has finished the Kubernetes upgrade"
)

// upgrading puts the statuses of a cluster's upgrades into a state; nil leaves one out.
func upgrading(t *testing.T, st state.State, talos *specs.TalosUpgradeStatusSpec, kubernetes *specs.KubernetesUpgradeStatusSpec) {
	t.Helper()

	if talos != nil {
		status := omnires.NewTalosUpgradeStatus("demo")
		status.TypedSpec().Value = talos

		if err := st.Create(t.Context(), status); err != nil {
			t.Fatal(err)
		}
	}

	if kubernetes != nil {
		status := omnires.NewKubernetesUpgradeStatus("demo")
		status.TypedSpec().Value = kubernetes

		if err := st.Create(t.Context(), status); err != nil {
			t.Fatal(err)
		}
	}
}

func talosUpgrade(phase specs.TalosUpgradeStatusSpec_Phase, last string) *specs.TalosUpgradeStatusSpec {
	return &specs.TalosUpgradeStatusSpec{Phase: phase, LastUpgradeVersion: last}
}

func kubernetesUpgrade(phase specs.KubernetesUpgradeStatusSpec_Phase, last string) *specs.KubernetesUpgradeStatusSpec {
	return &specs.KubernetesUpgradeStatusSpec{Phase: phase, LastUpgradeVersion: last}
}

// TestVersionWaitsForAnUpgrade checks which versions wait while Omni upgrades a cluster of Talos 1.13.2 and Kubernetes
// 1.35.0. What Omni refuses must wait, and nothing else may.
func TestVersionWaitsForAnUpgrade(t *testing.T) {
	for name, test := range map[string]struct {
		talos      *specs.TalosUpgradeStatusSpec
		kubernetes *specs.KubernetesUpgradeStatusSpec
		waits      []string
	}{
		"nothing is known": {nil, nil, nil},
		"both are done": {
			talosUpgrade(specs.TalosUpgradeStatusSpec_Done, "1.13.2"), kubernetesUpgrade(specs.KubernetesUpgradeStatusSpec_Done, "1.35.0"), nil,
		},
		"Talos":                    {talosUpgrade(specs.TalosUpgradeStatusSpec_Upgrading, "1.12.8"), nil, []string{kubernetesWaits}},
		"Talos, the first time":    {talosUpgrade(specs.TalosUpgradeStatusSpec_Upgrading, ""), nil, []string{kubernetesWaits}},
		"Talos has not begun":      {talosUpgrade(specs.TalosUpgradeStatusSpec_Done, "1.12.8"), nil, []string{kubernetesWaits}},
		"Talos was given up":       {talosUpgrade(specs.TalosUpgradeStatusSpec_Failed, "1.12.8"), nil, []string{kubernetesWaits}},
		"Talos is reverted":        {talosUpgrade(specs.TalosUpgradeStatusSpec_Reverting, "1.13.2"), nil, []string{kubernetesWaits}},
		"the extensions of Talos":  {talosUpgrade(specs.TalosUpgradeStatusSpec_UpdatingMachineSchematics, "1.13.2"), nil, nil},
		"Kubernetes":               {nil, kubernetesUpgrade(specs.KubernetesUpgradeStatusSpec_Upgrading, "1.34.8"), []string{talosWaits}},
		"Kubernetes has not begun": {nil, kubernetesUpgrade(specs.KubernetesUpgradeStatusSpec_Done, "1.34.8"), []string{talosWaits}},
		"Kubernetes was given up":  {nil, kubernetesUpgrade(specs.KubernetesUpgradeStatusSpec_Failed, "1.34.8"), []string{talosWaits}},
		"Kubernetes is reverted":   {nil, kubernetesUpgrade(specs.KubernetesUpgradeStatusSpec_Reverting, "1.35.0"), []string{talosWaits}},
		"Kubernetes is set up":     {nil, kubernetesUpgrade(specs.KubernetesUpgradeStatusSpec_Upgrading, ""), nil},
		"both": {
			talosUpgrade(specs.TalosUpgradeStatusSpec_Upgrading, "1.12.8"), kubernetesUpgrade(specs.KubernetesUpgradeStatusSpec_Upgrading, "1.34.8"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, runningTemplate)
			upgrading(t, st, test.talos, test.kubernetes)

			for what, options := range map[string]Options{"rollout": {Rollout: true}, "no rollout": {}} {
				var waits []string

				// A version by itself waits as one that comes with the other, and nothing else of the Cluster waits.
				for _, document := range []string{
					strings.NewReplacer("v1.35.0", "v1.36.1", "name: demo\n", "name: demo\nlabels: {team: a}\n").Replace(runningTemplate),
					strings.NewReplacer("v1.13.2", "v1.13.3", "name: demo\n", "name: demo\nlabels: {team: a}\n").Replace(runningTemplate),
				} {
					plan := mustPlan(t, st, document, options)
					if plan.Changes[0].ID != "demo" || plan.Changes[0].Part != "" {
						t.Errorf("%s: %v", what, lines(plan))
					}

					for _, change := range plan.WaitingForOmni {
						if waits = append(waits, change.Reason); change.Kind != change.Part || (change.Digest != "") != options.Rollout {
							t.Errorf("%s: %+v", what, change)
						}
					}
				}

				both := mustPlan(t, st, strings.NewReplacer("v1.35.0", "v1.36.1", "v1.13.2", "v1.13.3").Replace(runningTemplate), options)
				if len(both.Changes)+len(both.WaitingForOmni) != 2 || len(both.WaitingForOmni) != len(waits) {
					t.Errorf("%s: %v", what, lines(both))
				}

				if diff := cmp.Diff(test.waits, waits); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
			}
		})
	}
}

// TestOneVersionAtATime applies a template with two new versions, and another label, until nothing is left: the first
// write has one version and the label, the second the other version.
func TestOneVersionAtATime(t *testing.T) {
	for name, test := range map[string]struct {
		talos, kubernetes       string // of the cluster
		newTalos, newKubernetes string
		want                    string // what Omni has after the first write
		waits                   string
	}{
		"Talos goes first":                              {"v1.13.2", "v1.35.0", "v1.13.3", "v1.36.1", "1.13.3 1.35.0", kubernetesWaits},
		"the new Kubernetes needs the new Talos":        {"v1.12.8", "v1.35.0", "v1.13.3", "v1.36.1", "1.13.3 1.35.0", kubernetesWaits},
		"the new Talos does not run the old Kubernetes": {"v1.12.8", "v1.30.1", "v1.13.3", "v1.31.2", "1.12.8 1.31.2", talosWaits},
		"back: the old Kubernetes needs the old Talos":  {"v1.13.2", "v1.36.1", "v1.12.8", "v1.35.0", "1.13.2 1.35.0", "Talos v1.12.8 waits until Omni has finished the Kubernetes upgrade"},
		"a Talos that is not known here":                {"v1.13.2", "v1.35.0", "v1.99.0", "v1.36.1", "1.99.0 1.35.0", kubernetesWaits},
		"neither goes alone":                            {"v1.10.0", "v1.33.0", "v1.99.0", "v1.90.0", "1.99.0 1.33.0", "Kubernetes v1.90.0 waits until Omni has finished the Talos upgrade"},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			before := strings.NewReplacer("v1.13.2", test.talos, "v1.35.0", test.kubernetes).Replace(runningTemplate)
			after := strings.NewReplacer("v1.13.2", test.newTalos, "v1.35.0", test.newKubernetes, "name: demo\n", "name: demo\nlabels: {team: a}\n").Replace(runningTemplate)
			mustSync(t, st, before)

			noting := &omnitest.RefusingOmni{CoreState: st}
			result, err := Apply(t.Context(), state.WrapCore(noting), mustPlan(t, st, after, Options{}), ApplyOptions{})
			if err != nil || len(noting.Writes) != 1 || len(result.Applied) != 2 || len(result.Waiting) != 1 || result.Waiting[0].Reason != test.waits {
				t.Fatalf("%v: %v, applied %v, waiting %+v", err, noting.Writes, result.Applied, result.Waiting)
			}

			cluster, err := omni.ReadCluster(t.Context(), st, "demo")
			if err != nil {
				t.Fatal(err)
			}

			team, _ := cluster.Metadata().Labels().Get("team")
			if spec := cluster.TypedSpec().Value; spec.GetTalosVersion()+" "+spec.GetKubernetesVersion() != test.want || team != "a" {
				t.Errorf("Talos %s, Kubernetes %s, team %q", spec.GetTalosVersion(), spec.GetKubernetesVersion(), team)
			}

			mustSync(t, st, after)

			if left := mustPlan(t, st, after, Options{}); !left.Empty() {
				t.Errorf("left: %v", lines(left))
			}
		})
	}
}

// TestOrderOfVersionsIsNotHashed checks that what needs consent is the same before, between and after the versions.
func TestOrderOfVersionsIsNotHashed(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, runningTemplate)

	document := strings.NewReplacer(", 33333333-3333-4333-8333-333333333333]", "]", "v1.35.0", "v1.36.1", "v1.13.2", "v1.13.3").Replace(runningTemplate)
	want := mustPlan(t, st, strings.Replace(runningTemplate, ", 33333333-3333-4333-8333-333333333333]", "]", 1), Options{}).Hash

	for range 3 {
		plan := mustPlan(t, st, document, Options{})
		if plan.Hash != want || want == "" {
			t.Errorf("hash %q of %v, want %q", plan.Hash, lines(plan), want)
		}

		if _, err := Apply(t.Context(), st, plan, ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
