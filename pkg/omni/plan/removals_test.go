package plan

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// inSet returns the status of a machine that is in a set, listed or not, until it is wiped.
func inSet(machine, cluster, set string) resource.Resource {
	status := omnitest.Labelled(omnires.NewClusterMachineStatus(machine), cluster)
	status.Metadata().Labels().Set(omnires.LabelMachineSet, cluster+"-"+set)

	return status
}

// taken returns a machine that Omni took from a class for a set.
func taken(machine, set string) resource.Resource {
	node := omnitest.Labelled(omnires.NewMachineSetNode(machine, omnitest.SetNamed("demo", set)), "demo")
	node.Metadata().Labels().Set(omnires.LabelManagedByMachineSetNodeController, "")

	return node
}

// TestPatchWaitsForMachinesThatOmniStillRemoves moves a patch when the plan has no step any more for the machines that leave
// with it: Omni has taken them off the list, or has to choose them.
func TestPatchWaitsForMachinesThatOmniStillRemoves(t *testing.T) {
	const m2, m3, m4, m5 = omnitest.Machine2, omnitest.Machine3, omnitest.Machine4, "55555555-5555-4555-8555-555555555555"

	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	ofCluster := omnitest.ClusterDocument + netPatch + omnitest.ControlPlaneDocument
	c, patchedC := workers("c", m4), workers("c", m4, netPatch)
	listed, toC := base+workers("a", m2, netPatch)+c, base+workers("a", m2)+patchedC
	class, classToC := base+classWorkers("a", "2", netPatch)+c, base+classWorkers("a", "2")+patchedC
	all, allToC := base+classWorkers("a", "unlimited", netPatch)+c, base+classWorkers("a", "unlimited")+patchedC

	moves, waits := []string{`update ConfigPatch "400-net"`}, []string{`? update ConfigPatch "400-net"`}
	leaves := "machine " + m3 + ` of MachineSet "demo-a"`

	for name, test := range map[string]struct {
		first, second string
		has           []resource.Resource // of Omni, besides
		want          []string
		until         string // whose end the patch waits for
	}{
		"a machine is wiped": {listed, toC, []resource.Resource{inSet(m2, "demo", "a"), inSet(m3, "demo", "a")}, waits, leaves},
		"a machine of a class is wiped": {
			class, classToC, []resource.Resource{taken(m2, "a"), inSet(m2, "demo", "a"), inSet(m3, "demo", "a")}, waits, leaves,
		},
		"a machine that another set lists by now": {
			base + workers("a", m2, netPatch) + workers("c", m4+", "+m3), base + workers("a", m2) + workers("c", m4+", "+m3, netPatch),
			[]resource.Resource{inSet(m3, "demo", "a")}, waits, leaves,
		},
		"a class set has too many": {
			class, classToC, []resource.Resource{taken(m2, "a"), taken(m3, "a"), taken(m5, "a")}, waits, `MachineSet "demo-a" has 3 machines and is to have 2`,
		},
		// Nothing else can be chosen any more, so others come when it is gone, and need no patch of their own.
		"a machine is wiped, and others come": {
			listed, base + workers("a", m2) + c + workers("b", m5, netPatch), []resource.Resource{inSet(m3, "demo", "a")},
			[]string{`create MachineSet "demo-b" (none -> 1)`, `? create MachineSetNode "` + m5 + `"`, waits[0]}, leaves,
		},

		"a class set has as many as it shall": {class, classToC, []resource.Resource{taken(m2, "a"), taken(m3, "a")}, moves, ""},
		"a class set has too few":             {class, classToC, []resource.Resource{taken(m2, "a"), inSet(m2, "demo", "a")}, moves, ""},
		"an unlimited set":                    {all, allToC, []resource.Resource{taken(m2, "a"), inSet(m2, "demo", "a")}, moves, ""},
		"machines have come":                  {listed, toC, []resource.Resource{inSet(m2, "demo", "a"), inSet(m4, "demo", "c")}, moves, ""},
		"machines come, without a status yet": {listed, toC, nil, moves, ""},
		"a machine leaves another cluster":    {listed, toC, []resource.Resource{inSet(m3, "other", "a")}, moves, ""},
		"a machine leaves the new place":      {listed, toC, []resource.Resource{inSet(m3, "demo", "c")}, moves, ""},
		"a machine leaves, and keeps it":      {listed, ofCluster + workers("a", m2) + c, []resource.Resource{inSet(m3, "demo", "a")}, moves, ""},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.first)
			omnitest.MustCreate(t, st, test.has...)

			plan := mustPlan(t, st, test.second, Options{})
			if diff := cmp.Diff(test.want, lines(plan)); diff != "" {
				t.Fatal(diff)
			}

			if test.until == "" {
				return
			}

			want := "machines that are to leave keep it until they are gone (" + test.until + "); with another ID it need not wait"
			if waiting := plan.WaitingForOmni; waiting[len(waiting)-1].Reason != want {
				t.Errorf("got  %s\nwant %s", waiting[len(waiting)-1].Reason, want)
			}
		})
	}
}

// TestPatchMovesWhenTheMachineIsWiped follows one machine from the list to its end.
func TestPatchMovesWhenTheMachineIsWiped(t *testing.T) {
	base := omnitest.ClusterDocument + omnitest.ControlPlaneDocument
	second := base + workers("a", omnitest.Machine2) + workers("c", machine4, netPatch)

	st := omnitest.NewFakeOmni()
	mustSync(t, st, base+workers("a", omnitest.Machine2+", "+omnitest.Machine3, netPatch)+workers("c", machine4))

	status := inSet(omnitest.Machine3, "demo", "a")
	omnitest.MustCreate(t, st, status)

	node := "MachineSetNode " + omnitest.Machine3

	for _, want := range []string{"teardown " + node + ", destroy " + node, "", ""} {
		applies(t, st, second, want)
	}

	omnitest.MustDestroy(t, st, status)
	applies(t, st, second, "update ConfigPatch 400-net")
}

// applies applies a template with consent, and checks what is written.
func applies(t *testing.T, st *omnitest.FakeOmni, document, want string) {
	t.Helper()

	noting := &omnitest.RefusingOmni{CoreState: st}

	if _, err := Apply(t.Context(), state.WrapCore(noting), mustPlan(t, st, document, Options{}), ApplyOptions{Consent: EveryChange}); err != nil {
		t.Fatal(err)
	}

	if got := strings.Join(noting.Writes, ", "); got != want {
		t.Errorf("wrote %s\nwant  %s", got, want)
	}
}
