package plan

import (
	stdcmp "cmp"
	"slices"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// knowMachine makes Omni know a machine, of a cluster if one is named.
func knowMachine(t *testing.T, st state.State, id, cluster string) {
	t.Helper()

	machine := omnires.NewMachineStatus(id)
	if cluster != "" {
		machine.Metadata().Labels().Set(omnires.LabelCluster, cluster)
	}

	if err := st.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
}

// sortedLines returns the changes of a list, sorted; nil if it is empty.
func sortedLines(list []Change) []string { return slices.Sorted(slices.Values(changes(list))) }

func listedWorkers(name string, machines ...string) string {
	document := "---\nkind: Workers\nname: " + name + "\nmachines:\n"
	for _, machine := range machines {
		document += "- " + machine + "\n"
	}

	return document
}

// TestPlanFindsMissingMachines starts from a control plane of machine1 and the set workers of machine2 and machine3. Omni knows no
// machine but those of the rows.
func TestPlanFindsMissingMachines(t *testing.T) {
	const free = "aaaaaaaa-0000-4000-8000-000000000001"
	controlPlane := func(machine string) string { return "---\nkind: ControlPlane\nmachines:\n- " + machine + "\n" }
	unknown := func(set string) string {
		return "machine " + omnitest.Machine4 + ` is not registered in Omni, and MachineSet "demo-` + set + `" lists it`
	}

	for name, test := range map[string]struct {
		before   string // the whole template; default: omnitest.FullTemplate
		document string
		known    map[string]string // machines, with their clusters
		lacks    map[string]string // by what is destroyed
		held     []string          // without consent
	}{
		"replaced by one that Omni does not know": {
			document: omnitest.ControlPlaneDocument + listedWorkers("workers", omnitest.Machine2, omnitest.Machine4),
			lacks:    map[string]string{omnitest.Machine3: unknown("workers")},
			held:     []string{"create MachineSetNode " + omnitest.Machine4, "destroy MachineSetNode " + omnitest.Machine3},
		},
		"replaced by one of another cluster": {
			document: omnitest.ControlPlaneDocument + listedWorkers("workers", omnitest.Machine2, omnitest.Machine4),
			known:    map[string]string{omnitest.Machine4: "other"},
			lacks: map[string]string{
				omnitest.Machine3: "machine " + omnitest.Machine4 + ` still belongs to cluster "other" in Omni, and MachineSet "demo-workers" lists it`,
			},
			held: []string{"create MachineSetNode " + omnitest.Machine4, "destroy MachineSetNode " + omnitest.Machine3},
		},
		"replaced by a free one": {
			document: omnitest.ControlPlaneDocument + listedWorkers("workers", omnitest.Machine2, omnitest.Machine4),
			known:    map[string]string{omnitest.Machine4: ""},
			held:     []string{"destroy MachineSetNode " + omnitest.Machine3},
		},
		"one of two is missing": {
			document: omnitest.ControlPlaneDocument + listedWorkers("workers", free, omnitest.Machine4),
			known:    map[string]string{free: ""},
			lacks:    map[string]string{omnitest.Machine2: unknown("workers"), omnitest.Machine3: unknown("workers")},
			held: []string{
				"create MachineSetNode " + omnitest.Machine4, "destroy MachineSetNode " + omnitest.Machine2, "destroy MachineSetNode " + omnitest.Machine3,
			},
		},
		"the control plane's only machine": {
			document: controlPlane(omnitest.Machine4) + omnitest.WorkersDocument,
			lacks:    map[string]string{omnitest.Machine1: unknown("control-planes")},
			held:     []string{"create MachineSetNode " + omnitest.Machine4, "destroy MachineSetNode " + omnitest.Machine1},
		},
		"added, and nothing leaves": {
			document: omnitest.ControlPlaneDocument + listedWorkers("workers", omnitest.Machine2, omnitest.Machine3, omnitest.Machine4),
		},
		"added to one set, and one leaves another": {
			document: omnitest.ControlPlaneDocument + listedWorkers("workers", omnitest.Machine2) + listedWorkers("more", omnitest.Machine4),
			held:     []string{"destroy MachineSetNode " + omnitest.Machine3},
		},
		"the set renamed": {
			document: omnitest.ControlPlaneDocument + listedWorkers("renamed", free, omnitest.Machine4),
			known:    map[string]string{free: ""},
			lacks:    map[string]string{"demo-workers": unknown("renamed")},
			held: []string{
				"create MachineSet demo-renamed", "create MachineSetNode " + omnitest.Machine4, "create MachineSetNode " + free, "destroy MachineSet demo-workers",
			},
		},
		"the set renamed, with its machines": {
			document: omnitest.ControlPlaneDocument + listedWorkers("renamed", omnitest.Machine2, omnitest.Machine3),
			held: []string{
				"destroy MachineSet demo-workers", "destroy MachineSetNode " + omnitest.Machine2, "destroy MachineSetNode " + omnitest.Machine3,
			},
		},
		"the set replaced by one of a class": {
			document: omnitest.ControlPlaneDocument + "---\nkind: Workers\nname: renamed\nmachineClass:\n  name: pool\n  size: 2\n",
			held:     []string{"destroy MachineSet demo-workers"},
		},
		"the class of the set replaced by a list": {
			before:   omnitest.ClusterDocument + omnitest.ControlPlaneDocument + "---\nkind: Workers\nname: workers\nmachineClass:\n  name: pool\n  size: 2\n",
			document: omnitest.ControlPlaneDocument + listedWorkers("workers", omnitest.Machine4),
			lacks:    map[string]string{"demo-workers": unknown("workers")},
			held:     []string{"create MachineSetNode " + omnitest.Machine4, "update MachineSet demo-workers"},
		},
		"a set that goes beside a control plane that lacks one": {
			document: controlPlane(omnitest.Machine4),
			lacks:    map[string]string{omnitest.Machine1: unknown("control-planes")},
			held: []string{
				"create MachineSetNode " + omnitest.Machine4, "destroy MachineSet demo-workers", "destroy MachineSetNode " + omnitest.Machine1,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, stdcmp.Or(test.before, omnitest.FullTemplate))

			for machine, cluster := range test.known {
				knowMachine(t, st, machine, cluster)
			}

			plan := mustPlan(t, st, omnitest.ClusterDocument+test.document, Options{})
			lacks := map[string]string{}

			for i, change := range plan.Changes {
				if diff := cmp.Diff(change, plan.steps[i].change); diff != "" {
					t.Errorf("the step differs from its change:\n%s", diff)
				}

				if change.Lacks != "" {
					lacks[change.ID] = change.Lacks
				}
			}

			if diff := cmp.Diff(test.lacks, lacks); diff != "" && len(test.lacks)+len(lacks) > 0 {
				t.Errorf("lacks (-want +got):\n%s", diff)
			}

			if diff := cmp.Diff(test.held, sortedLines(plan.WouldHold(nil, nil))); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}

			if held := plan.WouldHold(EveryChange, nil); len(held) > 0 {
				t.Errorf("held with consent: %v", changes(held))
			}

			if awaits := plan.Awaited(); (len(awaits) > 0) != (len(test.lacks) > 0) {
				t.Errorf("awaits %v", awaits)
			}
		})
	}
}

// TestNewSetThatWaitsForAMachine checks that a set which Omni has already, without a machine, counts as new: it may have been made
// before the removal of the other one was asked for.
func TestNewSetThatWaitsForAMachine(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate+"---\nkind: Workers\nname: renamed\n")

	plan := mustPlan(t, st, omnitest.ClusterDocument+omnitest.ControlPlaneDocument+listedWorkers("renamed", omnitest.Machine4), Options{})

	want := []string{"create MachineSetNode " + omnitest.Machine4, "destroy MachineSet demo-workers"}
	if diff := cmp.Diff(want, sortedLines(plan.WouldHold(nil, nil))); diff != "" {
		t.Error(diff)
	}

	if want := []omni.ResourceKey{{ResourceType: omnires.MachineStatusType, ID: omnitest.Machine4}}; !cmp.Equal(want, plan.Awaited()) {
		t.Errorf("awaits %v", plan.Awaited())
	}
}
