package omnicluster

import (
	"slices"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// mistyped is the UUID of no machine.
const mistyped = "99999999-9999-4999-8999-999999999999"

// runningList is a fixture with a cluster that runs: one control plane, and the set w of one listed machine.
func runningList(t *testing.T) *fixture {
	t.Helper()

	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]), listing("w", f.machines[1]))
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	return f
}

// list changes the machines of a set.
func (f *fixture) list(set string, machines ...string) {
	f.t.Helper()
	change(f, set, &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = machines })
}

// listed returns the machines that Omni has listed in a set, sorted.
func (f *fixture) listed(set string) []string {
	f.t.Helper()

	nodes, err := safe.StateListAll[*omnires.MachineSetNode](f.t.Context(), f.omni.State(),
		state.WithLabelQuery(resource.LabelEqual(omnires.LabelMachineSet, testCluster+"-"+set)))
	if err != nil {
		f.t.Fatal(err)
	}

	var machines []string
	for node := range nodes.All() {
		machines = append(machines, node.Metadata().ID())
	}

	return slices.Sorted(slices.Values(machines))
}

// keepsUntilApproved checks that a plan destroys nothing, however long it waits, and names the machine that is missing first.
func (f *fixture) keepsUntilApproved(missing ...string) *v1alpha1.OmniCluster {
	f.t.Helper()

	cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(f.t, message(cluster, "Ready"), missing...)
	f.advance(100 * settleTime)
	f.quiet()
	f.wantTornDown()

	return cluster
}

func TestMistypedMachineKeepsTheOther(t *testing.T) {
	f := runningList(t)

	f.list("w", mistyped)
	cluster := f.keepsUntilApproved("machine "+mistyped+" is not registered in Omni", `MachineSet "demo-w"`, "approvedPlan")

	if text := message(cluster, "Ready"); text[:8] != "machine " {
		t.Errorf("what is missing is not named first: %s", text)
	}

	if diff := cmp.Diff([]string{f.machines[1]}, f.listed("w")); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}

	// The machine connects: the replacement goes on by itself.
	if _, err := f.omni.AddMachine(omnisim.Machine{ID: mistyped}); err != nil {
		t.Fatal(err)
	}

	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSetNodes " + f.machines[1])
}

func TestMistypedMachineOfAControlPlane(t *testing.T) {
	f := runningList(t)

	change(f, "cp", &v1alpha1.OmniControlPlane{}, func(o *v1alpha1.OmniControlPlane) { o.Spec.Machines = []string{mistyped} })
	f.keepsUntilApproved("machine "+mistyped+" is not registered in Omni", `MachineSet "demo-control-planes"`)
}

func TestMistypedMachineApproved(t *testing.T) {
	f := runningList(t)

	f.list("w", mistyped)
	f.approvePlan()
	f.until("Synced", metav1.ConditionTrue, "UpToDate")
	f.wantTornDown("MachineSetNodes " + f.machines[1])

	if diff := cmp.Diff([]string{mistyped}, f.listed("w")); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
}

// A machine that was listed long ago and never came keeps no other from leaving.
func TestRemovalBesideAMachineThatNeverCame(t *testing.T) {
	f := runningList(t)

	f.list("w", f.machines[1], mistyped)
	f.until("Synced", metav1.ConditionTrue, "UpToDate")
	f.list("w", mistyped)
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Synced", metav1.ConditionTrue, "UpToDate")
	f.wantTornDown("MachineSetNodes " + f.machines[1])
}

// A set that is renamed, with a mistyped machine: the old one stays, and the new one is not begun.
func TestMistypedMachineOfARenamedSet(t *testing.T) {
	f := runningList(t)

	f.delete(listing("w"))
	f.create(listing("renamed", mistyped, f.machines[2]))
	f.keepsUntilApproved("machine "+mistyped+" is not registered in Omni", `MachineSet "demo-renamed"`)

	if sets := f.view().Machines; len(sets) != 2 {
		t.Errorf("sets %v", sets)
	}

	f.list("renamed", f.machines[2])
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSets demo-w")
}

// The machines of a renamed set come free by that very change.
func TestRenamedSetOfTheSameMachines(t *testing.T) {
	f := runningList(t)

	f.delete(listing("w"))
	f.create(listing("renamed", f.machines[1]))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSetNodes "+f.machines[1], "MachineSets demo-w")
}

// Omni refuses a machine of a new set. That the set itself is there by the next run changes nothing: the old one stays.
func TestSetStaysForOneWhoseMachineIsRefused(t *testing.T) {
	f := runningList(t)

	newer, err := f.omni.AddMachine(omnisim.Machine{TalosVersion: "1.14.0", Installed: true})
	if err != nil {
		t.Fatal(err)
	}

	f.delete(listing("w"))
	f.create(listing("renamed", newer))
	f.until("Stalled", metav1.ConditionTrue, "Refused")
	f.advance(settleTime)
	f.run()
	f.advance(100 * settleTime)
	f.quiet()
	f.wantTornDown()
}
