package omnicluster

import (
	"slices"
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
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// inCluster labels what somebody makes in Omni by hand.
func inCluster[R resource.Resource](item R) R {
	item.Metadata().Labels().Set(omnires.LabelCluster, testCluster)

	return item
}

// byHand makes resources in Omni past our operator.
func (f *fixture) byHand(made ...resource.Resource) {
	f.t.Helper()

	for _, item := range made {
		if err := f.omni.State().Create(f.t.Context(), item); err != nil {
			f.t.Fatal(err)
		}

		f.awaitCopy(item)
	}
}

// awaitCopy waits until the local copy shows a resource. Each type has a watch of its own, and a plan from half of what
// was made is another plan.
func (f *fixture) awaitCopy(item resource.Resource) {
	f.t.Helper()

	lease, open := f.pool.Get("uid-connection")
	if !open {
		return
	}
	defer lease.Release()

	f.eventually("the local copy", func() string {
		if _, err := lease.Mirror().State().Get(f.t.Context(), item.Metadata()); err != nil {
			return err.Error()
		}

		return ""
	})
}

// setByHand makes a worker set with listed machines past our operator.
func (f *fixture) setByHand(name string, machines ...string) {
	f.t.Helper()

	set := inCluster(omnires.NewMachineSet(testCluster + "-" + name))
	set.Metadata().Labels().Set(omnires.LabelWorkerRole, "")
	f.byHand(set)

	for _, machine := range machines {
		f.byHand(inCluster(omnires.NewMachineSetNode(machine, set)))
	}
}

// patchByHand makes a patch of the whole cluster past our operator.
func (f *fixture) patchByHand(id string) {
	f.t.Helper()

	patch := inCluster(omnires.NewConfigPatch(id))
	if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine: {sysctls: {a: b}}")); err != nil {
		f.t.Fatal(err)
	}

	f.byHand(patch)
}

// scaleByHand changes the size of a class set as Omni's UI does.
func (f *fixture) scaleByHand(set string, size uint32) {
	f.t.Helper()

	if _, err := safe.StateUpdateWithConflicts(f.t.Context(), f.omni.State(), omnires.NewMachineSet(set).Metadata(), func(set *omnires.MachineSet) error {
		set.TypedSpec().Value.MachineAllocation.MachineCount = size

		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// tornDown lists what our operator asked Omni to destroy, each once.
func (f *fixture) tornDown() []string {
	var all []string

	seen := map[string]bool{}

	for _, write := range f.omni.Writes() {
		line := strings.TrimSuffix(write.Type, ".omni.sidero.dev") + " " + write.ID
		if (write.Verb == "Teardown" || write.Verb == "Destroy") && !seen[line] {
			seen[line] = true
			all = append(all, line)
		}
	}

	return all
}

func (f *fixture) wantTornDown(want ...string) {
	f.t.Helper()

	if diff := cmp.Diff(want, f.tornDown()); diff != "" {
		f.t.Errorf("destroyed in Omni (-want +got):\n%s", diff)
	}
}

func TestRecordInTheStatus(t *testing.T) {
	f := running(t)
	want := []v1alpha1.AppliedMachineSet{{ID: "demo-control-planes", Machines: []string{f.machines[0]}}, {ID: "demo-w", Size: "pool/2", OmniWorkers: "w"}}

	if diff := cmp.Diff(want, f.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	f.until("Synced", metav1.ConditionTrue, "")

	want[1].Size = "pool/3"
	if diff := cmp.Diff(want, f.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	f.until("Ready", metav1.ConditionTrue, "Running")
	f.delete(newWorkers("w", machineClass, 2))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	if diff := cmp.Diff(want[:1], f.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	f.quiet()
}

// Under Apply, too, what people made in Omni stays until somebody approves; what
// the documents ask for goes on beside it.
func TestMadeByHandWaitsForApproval(t *testing.T) {
	f := running(t)
	f.setByHand("by-hand", f.machines[1])
	cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(t, message(cluster, "Ready"), `MachineSet "demo-by-hand"`, "not made by this object", `"approvedPlan":"`+cluster.Status.Plan.Hash+`"`)

	for _, planned := range cluster.Status.Plan.Changes {
		if planned.Destructive != planned.NeedsApproval {
			t.Errorf("%+v", planned)
		}
	}

	f.advance(10 * settleTime)
	f.quiet()
	f.wantTornDown()

	// What the documents ask for goes on.
	f.delete(newWorkers("w", machineClass, 2))
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"harmless": "yes"} })

	cluster = f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	says(t, message(cluster, "Ready"), "asked for", `MachineSet "demo-by-hand"`)

	if f.view().Labels["harmless"] != "yes" {
		t.Error("the harmless change waits as well")
	}

	f.advance(settleTime)
	f.until("Synced", metav1.ConditionFalse, "AwaitingApproval")
	f.quiet()
	f.wantTornDown("MachineSets demo-w")

	if got := f.view().Machines; got["demo-by-hand"] != 1 {
		t.Errorf("Omni has %v", got)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = f.get().Status.Plan.Hash })
	f.until("Ready", metav1.ConditionTrue, "Running")

	if _, left := f.view().Machines["demo-by-hand"]; left {
		t.Error("the approved destruction was not done")
	}

	f.quiet()
}

// A set that goes would take along a machine that somebody put into it.
func TestMachineAddedByHandSavesItsSet(t *testing.T) {
	listed := newWorkers("listed", "", 0)
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{}
	f := newFixture(t, newCluster())
	listed.Spec.Machines = []string{f.machines[1]}
	f.create(newControlPlane("cp", f.machines[0]), listed)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	f.byHand(inCluster(omnires.NewMachineSetNode(f.machines[2], omnires.NewMachineSet("demo-listed"))))
	says(t, message(f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), f.machines[2], "not put there by this object")
	f.delete(listed)
	f.eventually("the set to wait", func() string {
		f.run()
		f.advance(settleTime)

		if said := message(f.get(), "Ready"); !strings.Contains(said, `MachineSet "demo-listed"`) || !strings.Contains(said, "which this object did not put there") {
			return said
		}

		return ""
	})
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.quiet()
	f.wantTornDown()

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = f.get().Status.Plan.Hash })
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// Somebody scales a class in Omni: taking the machines away again is not asked for.
func TestScaledInOmniWaitsForApproval(t *testing.T) {
	f := running(t)
	f.scaleByHand("demo-w", 4)

	cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(t, message(cluster, "Ready"), "(pool/4 -> pool/2)", "sized pool/4 in Omni, not pool/2")
	f.advance(10 * settleTime)
	f.quiet()

	// Deleting the document asks for two machines, not for four.
	f.delete(newWorkers("w", machineClass, 2))
	f.eventually("the set to wait", func() string {
		f.run()
		f.advance(settleTime)

		if said := message(f.get(), "Ready"); !strings.Contains(said, "destroy MachineSet") {
			return said
		}

		return ""
	})
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.wantTornDown()
}

// A machine that was listed by mistake is taken off the list while Omni still gets it: this object put it there.
func TestWhatWasCreatedMeanwhileIsOurs(t *testing.T) {
	f := newFixture(t, newCluster())
	listed := newWorkers("w", "", 0)
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{f.machines[1]}}
	f.create(newControlPlane("cp", f.machines[0]), listed)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	list := func(machines ...string) {
		change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = machines })
	}

	list(f.machines[1], f.machines[2])

	created := make(chan struct{})
	f.omni.Inject(omnisim.Fault{Method: "Create", Type: omnires.MachineSetNodeType, Times: 1, AnswerLost: true, OnHit: func() { close(created) }, Delay: time.Second})

	go func() {
		<-created
		list(f.machines[1])
	}()

	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	if sets := f.get().Status.AppliedMachineSets; !slices.Contains(sets[1].Machines, f.machines[2]) {
		t.Errorf("recorded: %v", sets)
	}

	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSetNodes " + f.machines[2])
}

// Our etcd was restored: the status knows less than Omni has.
func TestRestoredStatusDestroysNothing(t *testing.T) {
	f := running(t)
	old := f.get().Status.AppliedMachineSets

	f.create(newWorkers("later", machineClass, 1))
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	cluster := f.get()
	cluster.Status.AppliedMachineSets = old

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.delete(newWorkers("later", machineClass, 1))
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(2)) })
	f.restart()

	says(t, message(f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), `"demo-later"`, `"demo-w" (pool/3 -> pool/2)`)
	f.advance(10 * settleTime)
	f.quiet()
	f.wantTornDown()

	if got := f.view().Machines; got["demo-w"] != 3 || got["demo-later"] != 1 {
		t.Errorf("Omni has %v", got)
	}

	// Every approval is of what is shown now.
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = strings.Repeat("0", 64) })
	f.eventually("the stale approval to be told", func() string {
		f.run()

		return map[bool]string{false: message(f.get(), "Ready")}[strings.Contains(message(f.get(), "Ready"), "spec.approvedPlan (000000000000...) approves another plan")]
	})
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = f.get().Status.Plan.Hash })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

// Our etcd was restored to a state in which a set, a machine and a manifest group were to go. They went then, and all were made again
// with the same names and sizes since: that is not what was to go.
func TestRestoredRemovalIsOfWhatWasThereThen(t *testing.T) {
	for name, wipe := range map[string]bool{"times": false, "no times": true} {
		t.Run(name, func(t *testing.T) { testRestoredRemoval(t, wipe) })
	}
}

func testRestoredRemoval(t *testing.T, wipe bool) {
	t.Helper()

	f := running(t)
	listed := newWorkers("l", "", 0)
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: f.machines[1:]}
	f.create(listed)
	f.wants(v1alpha1.ManifestFull, "a")

	remove := func() {
		f.delete(newWorkers("w", machineClass, 2))
		change(f, "l", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = f.machines[1:2] })
		f.wants(v1alpha1.ManifestFull)
	}

	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
	remove()

	before := f.until("Synced", metav1.ConditionFalse, "WaitingToSettle").Status

	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	sorted := func(want ...string) {
		t.Helper()

		if diff := cmp.Diff(want, slices.Sorted(slices.Values(f.tornDown()))); diff != "" {
			t.Errorf("destroyed in Omni (-want +got):\n%s", diff)
		}
	}
	want := []string{"KubernetesManifestGroups 200-cluster-demo-a", "MachineSetNodes " + f.machines[2], "MachineSets demo-w"}
	sorted(want...)

	time.Sleep(time.Second) // what is made again has another time
	f.create(newWorkers("w", machineClass, 2))
	change(f, "l", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = f.machines[1:] })
	f.wants(v1alpha1.ManifestFull, "a")
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
	remove()

	cluster := f.get()
	cluster.Status.AppliedMachineSets, cluster.Status.AppliedManifests, cluster.Status.AppliedTimes =
		before.AppliedMachineSets, before.AppliedManifests, before.AppliedTimes

	if wipe {
		cluster.Status.AppliedTimes = nil
	}

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.restart()
	says(t, message(f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), `MachineSet "demo-w"`, "made in Omni at", "does not record")
	f.advance(10 * settleTime)
	f.quiet()
	sorted(want...)

	if got := f.view().Machines; got["demo-w"] != 2 || got["demo-l"] != 2 {
		t.Errorf("Omni has %v", got)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = f.get().Status.Plan.Hash })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

// An object of a release that kept no record gets one from what is as wanted.
func TestRecordIsMadeForOlderObjects(t *testing.T) {
	f := running(t)
	cluster := f.get()
	want, times := cluster.Status.AppliedMachineSets, cluster.Status.AppliedTimes
	cluster.Status.AppliedMachineSets, cluster.Status.AppliedTimes = nil, nil

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.restart()
	f.run()

	if diff := cmp.Diff(want, f.get().Status.AppliedMachineSets); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(times, f.get().Status.AppliedTimes); diff != "" || len(times) != 3 {
		t.Error(times, diff)
	}

	f.quiet()
	f.delete(newWorkers("w", machineClass, 2))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSets demo-w")
}

// What waits for approval does not start the settle time of the rest again.
func TestUnaskedChangesDoNotSettle(t *testing.T) {
	f := running(t)
	f.delete(newWorkers("w", machineClass, 2))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime - time.Second)
	f.setByHand("by-hand", f.machines[1])
	f.eventually("the set made by hand to be seen", func() string {
		f.run()

		return map[bool]string{false: message(f.get(), "Ready")}[strings.Contains(message(f.get(), "Ready"), "demo-by-hand")]
	})
	f.advance(time.Second)
	f.until("Synced", metav1.ConditionFalse, "AwaitingApproval")
	f.wantTornDown("MachineSets demo-w")
}

// withoutWorkers deletes the document of the worker set, and returns it as it is to be made again for another cluster.
func (f *fixture) withoutWorkers() *v1alpha1.OmniWorkers {
	f.t.Helper()

	moved := newWorkers("w", machineClass, 2)
	moved.Spec.ClusterRef.Name = "other"

	f.delete(newWorkers("w", machineClass, 2))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	return moved
}

// Whoever may not edit a document deletes it and makes it again: Flux with force. Nobody asked for the removal of its set.
func TestSetWhoseDocumentMovedByForce(t *testing.T) {
	f := running(t)
	moved := f.withoutWorkers()

	f.create(moved)
	f.advance(settleTime)

	says := message(f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Stalled")
	for _, word := range []string{`MachineSet "demo-w"`, `OmniWorkers "w"`, `OmniCluster "other"`} {
		if !strings.Contains(says, word) {
			t.Errorf("does not say %s: %s", word, says)
		}
	}

	// Neither does its deletion there ask for that.
	f.delete(moved)
	f.advance(settleTime)
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.advance(settleTime)
	f.quiet()
	f.wantTornDown()

	f.create(newWorkers("w", machineClass, 2))
	f.until("Ready", metav1.ConditionTrue, "Running")

	if set := f.get().Status.AppliedMachineSets[1]; set.OmniWorkers != "w" || set.MovedTo != "" {
		t.Errorf("%+v", set)
	}

	f.quiet()
}
