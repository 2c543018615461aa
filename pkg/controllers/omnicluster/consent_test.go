package omnicluster

import (
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// inCluster labels what somebody makes in Omni by hand.
func inCluster[R resource.Resource](item R) R {
	item.Metadata().Labels().Set(omnires.LabelCluster, benchCluster)

	return item
}

// byHand makes resources in Omni past our operator.
func (b *bench) byHand(made ...resource.Resource) {
	b.t.Helper()

	for _, item := range made {
		if err := b.omni.State().Create(b.t.Context(), item); err != nil {
			b.t.Fatal(err)
		}

		b.awaitCopy(item)
	}
}

// awaitCopy waits until the local copy shows a resource. Each type has a watch of its own, and a plan from half of what
// was made is another plan.
func (b *bench) awaitCopy(item resource.Resource) {
	b.t.Helper()

	lease, open := b.pool.Get("uid-connection")
	if !open {
		return
	}
	defer lease.Release()

	b.eventually("the local copy", func() string {
		if _, err := lease.Mirror().State().Get(b.t.Context(), item.Metadata()); err != nil {
			return err.Error()
		}

		return ""
	})
}

// setByHand makes a worker set with listed machines past our operator.
func (b *bench) setByHand(name string, machines ...string) {
	b.t.Helper()

	set := inCluster(omnires.NewMachineSet(benchCluster + "-" + name))
	set.Metadata().Labels().Set(omnires.LabelWorkerRole, "")
	b.byHand(set)

	for _, machine := range machines {
		b.byHand(inCluster(omnires.NewMachineSetNode(machine, set)))
	}
}

// patchByHand makes a patch of the whole cluster past our operator.
func (b *bench) patchByHand(id string) {
	b.t.Helper()

	patch := inCluster(omnires.NewConfigPatch(id))
	if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine: {sysctls: {a: b}}")); err != nil {
		b.t.Fatal(err)
	}

	b.byHand(patch)
}

// scaleByHand changes the size of a class set as Omni's UI does.
func (b *bench) scaleByHand(set string, size uint32) {
	b.t.Helper()

	if _, err := safe.StateUpdateWithConflicts(b.t.Context(), b.omni.State(), omnires.NewMachineSet(set).Metadata(), func(set *omnires.MachineSet) error {
		set.TypedSpec().Value.MachineAllocation.MachineCount = size

		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
}

// tornDown lists what our operator asked Omni to destroy, each once.
func (b *bench) tornDown() []string {
	var all []string

	seen := map[string]bool{}

	for _, write := range b.omni.Writes() {
		line := strings.TrimSuffix(write.Type, ".omni.sidero.dev") + " " + write.ID
		if (write.Verb == "Teardown" || write.Verb == "Destroy") && !seen[line] {
			seen[line] = true
			all = append(all, line)
		}
	}

	return all
}

func (b *bench) wantTornDown(want ...string) {
	b.t.Helper()

	if diff := cmp.Diff(want, b.tornDown()); diff != "" {
		b.t.Errorf("destroyed in Omni (-want +got):\n%s", diff)
	}
}

func TestRecordInTheStatus(t *testing.T) {
	b := running(t)
	want := []v1alpha1.AppliedMachineSet{{ID: "demo-control-planes", Machines: []string{b.machines[0]}}, {ID: "demo-w", Size: "pool/2"}}

	if diff := cmp.Diff(want, b.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	b.until("Synced", metav1.ConditionTrue, "")

	want[1].Size = "pool/3"
	if diff := cmp.Diff(want, b.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	b.until("Ready", metav1.ConditionTrue, "Running")
	b.delete(newWorkers("w", machineClass, 2))
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.advance(settleTime)
	b.until("Ready", metav1.ConditionTrue, "Running")

	if diff := cmp.Diff(want[:1], b.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	b.quiet()
}

// Under Apply, too, what people made in Omni stays until somebody approves; what
// the documents ask for goes on beside it.
func TestMadeByHandWaitsForApproval(t *testing.T) {
	b := running(t)
	b.setByHand("by-hand", b.machines[1])
	cluster := b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(t, message(cluster, "Ready"), `MachineSet "demo-by-hand"`, "not made by this object", `"approvedPlan":"`+cluster.Status.Plan.Hash+`"`)

	for _, planned := range cluster.Status.Plan.Changes {
		if planned.Destructive != planned.NeedsApproval {
			t.Errorf("%+v", planned)
		}
	}

	b.advance(10 * settleTime)
	b.quiet()
	b.wantTornDown()

	// What the documents ask for goes on.
	b.delete(newWorkers("w", machineClass, 2))
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"harmless": "yes"} })

	cluster = b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	says(t, message(cluster, "Ready"), "asked for", `MachineSet "demo-by-hand"`)

	if b.view().Labels["harmless"] != "yes" {
		t.Error("the harmless change waits as well")
	}

	b.advance(settleTime)
	b.until("Synced", metav1.ConditionFalse, "AwaitingApproval")
	b.quiet()
	b.wantTornDown("MachineSets demo-w")

	if got := b.view().Machines; got["demo-by-hand"] != 1 {
		t.Errorf("Omni has %v", got)
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = b.get().Status.Plan.Hash })
	b.until("Ready", metav1.ConditionTrue, "Running")

	if _, left := b.view().Machines["demo-by-hand"]; left {
		t.Error("the approved destruction was not done")
	}

	b.quiet()
}

// A set that goes would take along a machine that somebody put into it.
func TestMachineAddedByHandSavesItsSet(t *testing.T) {
	listed := newWorkers("listed", "", 0)
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{}
	b := newBench(t, newCluster())
	listed.Spec.Machines = []string{b.machines[1]}
	b.create(newControlPlane("cp", b.machines[0]), listed)
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()

	b.byHand(inCluster(omnires.NewMachineSetNode(b.machines[2], omnires.NewMachineSet("demo-listed"))))
	says(t, message(b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), b.machines[2], "not put there by this object")
	b.delete(listed)
	b.eventually("the set to wait", func() string {
		b.run()
		b.advance(settleTime)

		if said := message(b.get(), "Ready"); !strings.Contains(said, `MachineSet "demo-listed"`) || !strings.Contains(said, "which this object did not put there") {
			return said
		}

		return ""
	})
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.quiet()
	b.wantTornDown()

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = b.get().Status.Plan.Hash })
	b.until("Ready", metav1.ConditionTrue, "Running")
}

// Somebody scales a class in Omni: taking the machines away again is not asked for.
func TestScaledInOmniWaitsForApproval(t *testing.T) {
	b := running(t)
	b.scaleByHand("demo-w", 4)

	cluster := b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(t, message(cluster, "Ready"), "(pool/4 -> pool/2)", "sized pool/4 in Omni, not pool/2")
	b.advance(10 * settleTime)
	b.quiet()

	// Deleting the document asks for two machines, not for four.
	b.delete(newWorkers("w", machineClass, 2))
	b.eventually("the set to wait", func() string {
		b.run()
		b.advance(settleTime)

		if said := message(b.get(), "Ready"); !strings.Contains(said, "destroy MachineSet") {
			return said
		}

		return ""
	})
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.wantTornDown()
}

// Our etcd was restored: the status knows less than Omni has.
func TestRestoredStatusDestroysNothing(t *testing.T) {
	b := running(t)
	old := b.get().Status.AppliedMachineSets

	b.create(newWorkers("later", machineClass, 1))
	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()

	cluster := b.get()
	cluster.Status.AppliedMachineSets = old

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	b.delete(newWorkers("later", machineClass, 1))
	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(2)) })
	b.restart()

	says(t, message(b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), `"demo-later"`, `"demo-w" (pool/3 -> pool/2)`)
	b.advance(10 * settleTime)
	b.quiet()
	b.wantTornDown()

	if got := b.view().Machines; got["demo-w"] != 3 || got["demo-later"] != 1 {
		t.Errorf("Omni has %v", got)
	}

	// Every approval is of what is shown now.
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = strings.Repeat("0", 64) })
	b.eventually("the stale approval to be told", func() string {
		b.run()

		return map[bool]string{false: message(b.get(), "Ready")}[strings.Contains(message(b.get(), "Ready"), "spec.approvedPlan (000000000000...) approves another plan")]
	})
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = b.get().Status.Plan.Hash })
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()
}

// An object of a release that kept no record gets one from what is as wanted.
func TestRecordIsMadeForOlderObjects(t *testing.T) {
	b := running(t)
	cluster := b.get()
	want := cluster.Status.AppliedMachineSets
	cluster.Status.AppliedMachineSets = nil

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	b.restart()
	b.run()

	if diff := cmp.Diff(want, b.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	b.quiet()
	b.delete(newWorkers("w", machineClass, 2))
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.advance(settleTime)
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantTornDown("MachineSets demo-w")
}

// What waits for approval does not start the settle time of the rest again.
func TestUnaskedChangesDoNotSettle(t *testing.T) {
	b := running(t)
	b.delete(newWorkers("w", machineClass, 2))
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.advance(settleTime - time.Second)
	b.setByHand("by-hand", b.machines[1])
	b.eventually("the set made by hand to be seen", func() string {
		b.run()

		return map[bool]string{false: message(b.get(), "Ready")}[strings.Contains(message(b.get(), "Ready"), "demo-by-hand")]
	})
	b.advance(time.Second)
	b.until("Synced", metav1.ConditionFalse, "AwaitingApproval")
	b.wantTornDown("MachineSets demo-w")
}
