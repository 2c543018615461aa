package omnicluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// resize changes what the document of the worker set asks for.
func (f *fixture) resize(size int32) {
	f.t.Helper()
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(size)) })
}

// approvePlan approves what waits now, and returns its hash.
func (f *fixture) approvePlan() string {
	f.t.Helper()

	hash := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval").Status.Plan.Hash
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = hash })

	return hash
}

// waitsAgain checks that what was approved before is not done once more.
func (f *fixture) waitsAgain(approved string, machines int) {
	f.t.Helper()

	cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	says(f.t, message(cluster, "Ready"), "approves another plan")
	f.advance(10 * settleTime)
	f.quiet()

	if cluster = f.get(); cluster.Status.Plan.Hash == approved || cluster.Spec.ApprovedPlan != approved {
		f.t.Errorf("hash %s, approved %s", cluster.Status.Plan.Hash, cluster.Spec.ApprovedPlan)
	}

	f.eventually("the machines of the set", func() string {
		got := f.view().Machines["demo-w"]
		if got == machines {
			return ""
		}

		return fmt.Sprintf("Omni has %d machines in it, want %d", got, machines)
	})
}

// An old hash that still stands in the spec does not approve the same change of
// size a second time: the set is not the one that was approved.
func TestApprovalIsForOneTime(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.resize(1)
	hash := f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")

	f.resize(2)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.resize(1)
	f.waitsAgain(hash, 2)
}

func TestApprovalIsForOneScalingByHand(t *testing.T) {
	f := running(t)
	f.scaleByHand("demo-w", 4)
	hash := f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")

	f.scaleByHand("demo-w", 4)
	f.waitsAgain(hash, 4)
}

// Whoever empties spec.approvedPlan before it is carried out takes it back.
func TestApprovalTakenBack(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.delete(newWorkers("w", machineClass, 2))
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = true, o.Status.Plan.Hash })
	f.run()

	if got := f.get().Status.Plan.Approved; len(got) != 1 {
		t.Errorf("approved: %v", got)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = "" })
	f.run()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.advance(10 * settleTime)
	f.quiet()
	f.wantTornDown()
}

// listedSet is a cluster with a set of one listed machine, whose document is
// gone: its teardown waits for approval.
func listedSet(t *testing.T) *fixture {
	t.Helper()

	listed := newWorkers("w", "", 0)
	f := newFixture(t, newCluster())
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{f.machines[1]}}
	f.create(newControlPlane("cp", f.machines[0]), listed)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.delete(listed)
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	return f
}

// swapByHand takes one machine out of a set and puts another in, past our
// operator, and waits until that is to be seen.
func (f *fixture) swapByHand(set, out, in string) {
	f.t.Helper()

	from := omnires.NewMachineSet(set)

	// Omni may be quicker and destroy it itself.
	err := f.omni.State().TeardownAndDestroy(f.t.Context(), omnires.NewMachineSetNode(out, from).Metadata())
	if err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err)
	}

	f.byHand(inCluster(omnires.NewMachineSetNode(in, from)))

	lease, _ := f.pool.Get("uid-connection")
	defer lease.Release()

	f.eventually("the other machine to be seen", func() string {
		seen, err := observe.Observe(f.t.Context(), lease.Copy(), testCluster)
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
	f := listedSet(t)
	hash := f.get().Status.Plan.Hash
	f.swapByHand("demo-w", f.machines[1], f.machines[2])
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = hash })
	f.run()
	f.waitsAgain(hash, 1)
	f.wantTornDown()
	f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSets demo-w")
}

func TestRememberedApprovalIsForTheMachinesOfASet(t *testing.T) {
	f := listedSet(t)
	hash := f.get().Status.Plan.Hash
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = true, hash })
	f.run()

	if got := f.get().Status.Plan.Approved; len(got) != 1 {
		t.Fatalf("approved: %v", got)
	}

	f.swapByHand("demo-w", f.machines[1], f.machines[2])
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	f.run()
	f.waitsAgain(hash, 1)
	f.wantTornDown()
}

// A teardown that has begun cannot be stopped, and nobody is told that it was.
func TestOrphanedTooLate(t *testing.T) {
	f := running(t)
	f.omni.Pause()
	f.delete(newCluster())
	f.eventually("the teardown", func() string {
		f.run()

		return map[bool]string{true: "nothing is torn down"}[len(f.tornDown()) == 0]
	})
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	f.untilGone()
	f.omni.Resume()

	if !f.hasEvent("Released", "does not stay", "omnictl cluster delete demo") || strings.Contains(strings.Join(f.events.All(), "\n"), "stays in Omni") {
		t.Errorf("%v", f.events.All())
	}
}

// The status says that this hash was used: since then Omni was restored from a backup, and has the set again as it was.
func TestApprovalIsNotUsedAgainAfterARestoreOfOmni(t *testing.T) {
	f := running(t)
	f.setByHand("by-hand", f.machines[1])

	cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	used := cluster.Status.Plan.Hash
	cluster.Status.UsedApproval = used

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = used })
	f.run()
	f.waitsAgain(used, 2)
	f.restart()
	f.waitsAgain(used, 2)
	f.wantTornDown()

	again := f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("MachineSets demo-by-hand")
	f.quiet()

	if got := f.get().Status.UsedApproval; got != again {
		t.Errorf("the status says that %q was used, want %q", got, again)
	}
}

// Omni took the approved change, and its answer was lost, or the process was stopped then: the approval is used.
func TestApprovalIsUsedAlthoughItsAnswerIsLost(t *testing.T) {
	for name, stop := range map[string]bool{"the answer is lost": false, "the process is stopped": true} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
			f.resize(1)
			hash := f.approvePlan()

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()

			lost := make(chan struct{})
			f.omni.Inject(omnisim.Fault{
				Method: "Update", Type: omnires.MachineSetType, Times: 1, AnswerLost: true, Code: codes.Internal,
				OnHit: func() {
					close(lost)

					if stop {
						cancel()
					}
				},
			})

			f.eventually("the update", func() string {
				_, _ = f.loop.Reconcile(ctx, request(testNamespace, testCluster))

				select {
				case <-lost:
					return ""
				default:
					return fmt.Sprint(shown(f.get()))
				}
			})

			if stop {
				f.restart()
			}

			if used := f.until("Ready", metav1.ConditionTrue, "Running").Status.UsedApproval; used != hash {
				t.Errorf("used %q, approved %q", used, hash)
			}
		})
	}
}

// stopping ends the process, as a stop does, when a Namespace is read.
type stopping struct {
	client.Reader

	stop func()
}

// Get implements client.Reader.
func (s stopping) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isNamespace := object.(*corev1.Namespace); isNamespace {
		s.stop()

		return ctx.Err()
	}

	return s.Reader.Get(ctx, key, object, options...)
}

// A run that is stopped before it has decided about the plan knows nothing of it: what waits for an approval stays in the status.
func TestAStopKeepsThePlan(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.resize(1)

	before := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval").Status.Plan

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	f.reconciler.live = stopping{f.reconciler.live, cancel}

	if _, err := f.loop.Reconcile(ctx, request(testNamespace, testCluster)); err == nil || ctx.Err() == nil {
		t.Fatalf("it was not stopped: %v", err)
	}

	if after := f.get().Status.Plan; after == nil || after.Hash != before.Hash || len(after.Changes) != len(before.Changes) {
		t.Errorf("the plan was %+v, and is %+v", before, after)
	}
}
