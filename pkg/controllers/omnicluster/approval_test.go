package omnicluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
)

// resize changes what the document of the worker set asks for.
func (b *bench) resize(size int32) {
	b.t.Helper()
	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(size)) })
}

// approvePlan approves what waits now, and returns its hash.
func (b *bench) approvePlan() string {
	b.t.Helper()

	hash := b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval").Status.Plan.Hash
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = hash })

	return hash
}

// waitsAgain checks that what was approved before is not done once more.
func (b *bench) waitsAgain(approved string, machines int) {
	b.t.Helper()

	cluster := b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(b.t, message(cluster, "Ready"), "approves another plan")
	b.advance(10 * settleTime)
	b.quiet()

	if cluster = b.get(); cluster.Status.Plan.Hash == approved || cluster.Spec.ApprovedPlan != approved {
		b.t.Errorf("hash %s, approved %s", cluster.Status.Plan.Hash, cluster.Spec.ApprovedPlan)
	}

	b.eventually("the machines of the set", func() string {
		got := b.view().Machines["demo-w"]
		if got == machines {
			return ""
		}

		return fmt.Sprintf("Omni has %d machines in it, want %d", got, machines)
	})
}

// An old hash that still stands in the spec does not approve the same change of
// size a second time: the set is not the one that was approved.
func TestApprovalIsForOneTime(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	b.resize(1)
	hash := b.approvePlan()
	b.until("Ready", metav1.ConditionTrue, "Running")

	b.resize(2)
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.resize(1)
	b.waitsAgain(hash, 2)
}

func TestApprovalIsForOneScalingByHand(t *testing.T) {
	b := running(t)
	b.scaleByHand("demo-w", 4)
	hash := b.approvePlan()
	b.until("Ready", metav1.ConditionTrue, "Running")

	b.scaleByHand("demo-w", 4)
	b.waitsAgain(hash, 4)
}

// Whoever empties spec.approvedPlan before it is carried out takes it back.
func TestApprovalTakenBack(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	b.delete(newWorkers("w", machineClass, 2))
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = true, o.Status.Plan.Hash })
	b.run()

	if got := b.get().Status.Plan.Approved; len(got) != 1 {
		t.Errorf("approved: %v", got)
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = "" })
	b.run()
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.advance(10 * settleTime)
	b.quiet()
	b.wantTornDown()
}

// listedSet is a cluster with a set of one listed machine, whose document is
// gone: its teardown waits for approval.
func listedSet(t *testing.T) *bench {
	t.Helper()

	listed := newWorkers("w", "", 0)
	b := newBench(t, newCluster())
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{b.machines[1]}}
	b.create(newControlPlane("cp", b.machines[0]), listed)
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	b.delete(listed)
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	return b
}

// swapByHand takes one machine out of a set and puts another in, past our
// operator, and waits until that is to be seen.
func (b *bench) swapByHand(set, out, in string) {
	b.t.Helper()

	from := omnires.NewMachineSet(set)

	// Omni may be quicker and destroy it itself.
	err := b.omni.State().TeardownAndDestroy(b.t.Context(), omnires.NewMachineSetNode(out, from).Metadata())
	if err != nil && !state.IsNotFoundError(err) {
		b.t.Fatal(err)
	}

	b.byHand(inCluster(omnires.NewMachineSetNode(in, from)))

	lease, _ := b.pool.Get("uid-connection")
	defer lease.Release()

	b.eventually("the other machine to be seen", func() string {
		seen, err := observe.Observe(b.t.Context(), lease.Copy(), benchCluster)
		if err != nil {
			return err.Error()
		}

		has := func(id string) bool {
			return slices.ContainsFunc(seen.MachineList, func(m observe.Machine) bool { return m.ID == id && m.MachineSet == set })
		}

		return map[bool]string{false: fmt.Sprint(seen.MachineList)}[has(in) && !has(out)]
	})
}

// An approval is for the machines that were in the set: as many others are not
// what somebody looked at.
func TestApprovalIsForTheMachinesOfASet(t *testing.T) {
	b := listedSet(t)
	hash := b.get().Status.Plan.Hash
	b.swapByHand("demo-w", b.machines[1], b.machines[2])
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = hash })
	b.run()
	b.waitsAgain(hash, 1)
	b.wantTornDown()
	b.approvePlan()
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantTornDown("MachineSets demo-w")
}

func TestRememberedApprovalIsForTheMachinesOfASet(t *testing.T) {
	b := listedSet(t)
	hash := b.get().Status.Plan.Hash
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = true, hash })
	b.run()

	if got := b.get().Status.Plan.Approved; len(got) != 1 {
		t.Fatalf("approved: %v", got)
	}

	b.swapByHand("demo-w", b.machines[1], b.machines[2])
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	b.run()
	b.waitsAgain(hash, 1)
	b.wantTornDown()
}

// A teardown that has begun cannot be stopped, and nobody is told that it was.
func TestOrphanedTooLate(t *testing.T) {
	b := running(t)
	b.omni.Pause()
	b.delete(newCluster())
	b.eventually("the teardown", func() string {
		b.run()

		return map[bool]string{true: "nothing is torn down"}[len(b.tornDown()) == 0]
	})
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	b.untilGone()
	b.omni.Resume()

	if !b.hasEvent("Released", "does not stay", "omnictl cluster delete demo") || strings.Contains(strings.Join(b.seen, "\n"), "stays in Omni") {
		t.Errorf("%v", b.seen)
	}
}
