package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestVersionsWaitForTheirTurn checks that a version that waits for its turn keeps Omni's value, and that one write
// makes all changes that do not wait. Of two versions whose turn it is, one waits for the other.
func TestVersionsWaitForTheirTurn(t *testing.T) {
	document := strings.NewReplacer("v1.35.0", "v1.36.1", "v1.13.2", "v1.13.3", "name: demo\n", "name: demo\nlabels: {team: a}\n").Replace(runningTemplate)

	for name, test := range map[string]struct {
		admitted          []v1alpha1.ChangeKind
		kubernetes, talos string
		held, waiting     []string
	}{
		"both wait":      {nil, "1.35.0", "1.13.2", []string{"TalosVersion", "KubernetesVersion"}, nil},
		"Talos may":      {[]v1alpha1.ChangeKind{v1alpha1.ChangeTalosVersion}, "1.35.0", "1.13.3", []string{"KubernetesVersion"}, nil},
		"Kubernetes may": {[]v1alpha1.ChangeKind{v1alpha1.ChangeKubernetesVersion}, "1.36.1", "1.13.2", []string{"TalosVersion"}, nil},
		"both may":       {[]v1alpha1.ChangeKind{v1alpha1.ChangeTalosVersion, v1alpha1.ChangeKubernetesVersion}, "1.35.0", "1.13.3", nil, []string{"KubernetesVersion"}},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, runningTemplate)

			noting := &omnitest.RefusingOmni{CoreState: st}
			planned := mustPlan(t, st, document, Options{Rollout: true})
			options := ApplyOptions{Consent: EveryChange, Admit: func(change Change) bool {
				return change.Kind == KindFree || slices.Contains(test.admitted, change.Kind)
			}}

			result, err := Apply(t.Context(), state.WrapCore(noting), planned, options)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff([]string{"update Cluster demo"}, noting.Writes); diff != "" {
				t.Error(diff)
			}

			held, waiting := parts(result.Held), parts(result.Waiting)
			if cmp.Diff(test.held, held)+cmp.Diff(test.waiting, waiting) != "" || len(result.Applied)+len(held)+len(waiting) != 3 {
				t.Errorf("held %v, waiting %v, applied %v", held, waiting, result.Applied)
			}

			cluster, err := omni.ReadCluster(t.Context(), st, "demo")
			if err != nil {
				t.Fatal(err)
			}

			spec := cluster.TypedSpec().Value
			team, _ := cluster.Metadata().Labels().Get("team")

			if spec.GetKubernetesVersion() != test.kubernetes || spec.GetTalosVersion() != test.talos || team != "a" {
				t.Errorf("Kubernetes %s, Talos %s, team %q", spec.GetKubernetesVersion(), spec.GetTalosVersion(), team)
			}

			// The next plan has what was held, or waits.
			if left := mustPlan(t, st, document, Options{Rollout: true}); len(left.Changes) != len(test.held)+len(test.waiting) {
				t.Errorf("left: %v", lines(left))
			}

			// A plan may be applied again: the first time did not change it.
			if _, err = Apply(t.Context(), st, planned, options); omni.Classify(err) != omni.ClassConflict {
				t.Errorf("the same plan again: %v", err)
			}
		})
	}
}

func parts(changes []Change) (found []string) {
	for _, change := range changes {
		found = append(found, string(change.Part))
	}

	return found
}

// TestRefusedVersions checks that a refused update of the Cluster keeps its other changes from being tried.
func TestRefusedVersions(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, runningTemplate)

	document := strings.NewReplacer("v1.35.0", "v1.36.1", "v1.13.2", "v1.13.3").Replace(runningTemplate)
	refusing := &omnitest.RefusingOmni{CoreState: st, Refuse: "demo", With: status.Error(codes.InvalidArgument, "no such version")}

	result, err := Apply(t.Context(), state.WrapCore(refusing), mustPlan(t, st, document, Options{Rollout: true}), ApplyOptions{Consent: EveryChange})
	if omni.Classify(err) != omni.ClassRefused || len(result.Refused) != 1 || len(result.Skipped) != 1 || len(result.Applied) != 0 {
		t.Errorf("%v: refused %v, skipped %v, applied %v", err, result.Refused, result.Skipped, result.Applied)
	}
}

// TestRemovalsWaitForTheirTurn checks that a machine that waits for its turn to leave holds back what depends on it,
// and in the control plane its replacement.
func TestRemovalsWaitForTheirTurn(t *testing.T) {
	const control = "machines: [11111111-1111-4111-8111-111111111111]"

	for name, test := range map[string]struct {
		old, new string
		held     []string
		applied  []string
	}{
		"a swap in the control plane": {
			control, "machines: [44444444-4444-4444-8444-444444444444]",
			[]string{
				`create MachineSetNode "44444444-4444-4444-8444-444444444444"`, `destroy MachineSetNode "11111111-1111-4111-8111-111111111111"`,
			}, nil,
		},
		"a swap among workers": {
			"33333333-3333-4333-8333-333333333333]", "44444444-4444-4444-8444-444444444444]",
			[]string{`destroy MachineSetNode "33333333-3333-4333-8333-333333333333"`},
			[]string{`create MachineSetNode "44444444-4444-4444-8444-444444444444"`},
		},
		"a machine that goes with its own configuration": {
			", 33333333-3333-4333-8333-333333333333]", "]",
			[]string{
				`destroy MachineSetNode "33333333-3333-4333-8333-333333333333"`, `destroy ConfigPatch "400-cm-33333333-3333-4333-8333-333333333333-own"`,
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := runningTemplate
			own := "---\nkind: Machine\nname: 33333333-3333-4333-8333-333333333333\npatches: [{name: own, inline: {machine: {env: {D: \"1\"}}}}]\n"

			if strings.Contains(name, "own") {
				template += own
			}

			st := omnitest.NewFakeOmni()
			mustSync(t, st, template)
			knowMachine(t, st, omnitest.Machine4, "")

			changed := strings.ReplaceAll(strings.Replace(template, test.old, test.new, 1), own, "")

			result, err := Apply(t.Context(), st, mustPlan(t, st, changed, Options{Rollout: true}), ApplyOptions{
				Consent: EveryChange, Admit: func(change Change) bool { return change.Kind == KindFree },
			})
			if err != nil {
				t.Fatal(err)
			}

			texts := func(changes []Change) (found []string) {
				for _, change := range changes {
					found = append(found, change.String())
				}

				return found
			}

			if diff := cmp.Diff(test.held, texts(result.Held)); diff != "" {
				t.Errorf("held: %s", diff)
			}

			if diff := cmp.Diff(test.applied, texts(result.Applied)); diff != "" {
				t.Errorf("applied: %s", diff)
			}
		})
	}
}
