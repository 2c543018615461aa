package omnicluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestCreated(t *testing.T) {
	b := running(t)
	cluster := b.get()
	status := cluster.Status

	if view := b.view(); view.KubernetesVersion != "1.35.1" || view.Machines["demo-control-planes"] != 1 || view.Machines["demo-w"] != 2 {
		t.Errorf("Omni has %+v", view)
	}

	marks := map[string]string{}
	for key, value := range b.view().Annotations {
		if strings.HasPrefix(key, v1alpha1.GroupName) {
			marks[key] = value
		}
	}

	if diff := cmp.Diff(map[string]string{
		v1alpha1.MarkOwnerUID: "uid-demo", v1alpha1.MarkOwnerNamespace: "team", v1alpha1.MarkOwnerName: "demo", v1alpha1.MarkManagementCluster: "hub",
		v1alpha1.MarkHub: benchHub,
	}, marks); diff != "" {
		t.Error(diff)
	}

	if status.ClusterName != "demo" || status.Endpoint != b.omni.Endpoint() || status.OmniClusterID == "" || len(status.TemplateHash) != 64 || status.LastSyncTime == nil {
		t.Errorf("%+v", status)
	}

	if diff := cmp.Diff(&v1alpha1.AppliedReference{Name: "cp", UID: "uid-cp", Generation: 1}, status.ControlPlaneRef); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]v1alpha1.AppliedReference{{Name: "w", UID: "uid-w", Generation: 1}}, status.WorkersRefs); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(&v1alpha1.OmniClusterPlan{}, status.Plan); diff != "" {
		t.Error(diff)
	}

	if remote := status.Omni; remote.Phase != "Running" || remote.Machines.Healthy != 3 || len(remote.MachineSets) != 2 || remote.KubernetesVersion != "v1.35.1" {
		t.Errorf("%+v", remote)
	}

	if !b.hasEvent("Created", `Cluster "demo"`) {
		t.Errorf("no event of the creation: %q", b.seen)
	}
}

func TestChanged(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"team": "a"} })
	b.until("Ready", metav1.ConditionTrue, "Running")

	if got := b.view().Labels["team"]; got != "a" {
		t.Errorf("label %q", got)
	}

	if !b.hasEvent("Updated", `Cluster "demo"`) {
		t.Errorf("no event of the update: %q", b.seen)
	}

	b.quiet()

	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	b.eventually("three machines", func() string {
		b.run()

		if b.view().Machines["demo-w"] != 3 {
			return "not yet"
		}

		return ""
	})

	cluster := b.until("Ready", metav1.ConditionTrue, "Running")
	if got := cluster.Status.WorkersRefs[0].Generation; got != 2 {
		t.Errorf("applied generation %d", got)
	}
}

// Somebody changed the cluster past us.
func TestDriftIsCorrected(t *testing.T) {
	b := running(t)
	if err := omnisim.SetKubernetesVersion(t.Context(), b.omni.State(), "demo", "1.35.4"); err != nil {
		t.Fatal(err)
	}

	b.eventually("the version", func() string {
		b.run()

		return strings.TrimPrefix(b.view().KubernetesVersion, "1.35.1")
	})

	if !b.hasEvent("Corrected", `Cluster "demo"; it was changed in Omni`) {
		t.Errorf("no event of the correction: %q", b.seen)
	}
}

// A change that is only half applied when it is taken back is nobody else's.
func TestTakenBackIsNoCorrection(t *testing.T) {
	b := running(t)
	heal := b.omni.Inject(omnisim.Fault{Method: "Update", After: 1, Code: codes.InvalidArgument})
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"team": "a"} })
	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	b.until("Synced", metav1.ConditionFalse, "Refused")
	heal()

	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(2)) })
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = nil })
	b.until("Ready", metav1.ConditionTrue, "Running")

	if b.hasEvent("Corrected") {
		t.Errorf("events: %q", b.seen)
	}
}

func TestRestartWritesNothing(t *testing.T) {
	b := running(t)
	b.restart()
	b.quiet()
}

func TestDestroyedSetSettlesFirst(t *testing.T) {
	b := running(t)
	b.delete(newWorkers("w", machineClass, 2))
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"harmless": "yes"} })

	cluster := b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	if b.view().Labels["harmless"] != "yes" {
		t.Error("the harmless change waits as well")
	}

	if plan := cluster.Status.Plan; plan.Hash == "" || plan.Destroys < 1 || !plan.Changes[0].Destructive {
		t.Errorf("plan %+v", plan)
	}

	b.advance(settleTime - time.Second)

	if result := b.run(); result.RequeueAfter > time.Second+time.Millisecond {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}

	if b.view().Machines["demo-w"] != 2 {
		t.Fatal("destroyed before the settle time")
	}

	b.quiet()
	b.advance(time.Second)
	cluster = b.until("Ready", metav1.ConditionTrue, "Running")

	if _, left := b.view().Machines["demo-w"]; left {
		t.Errorf("Omni has %+v", b.view())
	}

	if cluster.Status.WorkersRefs != nil || cluster.Status.Plan.Hash != "" {
		t.Errorf("%+v", cluster.Status)
	}

	if !b.hasEvent("Destroyed", `MachineSet "demo-w"`) {
		t.Errorf("no event of the destruction: %q", b.seen)
	}

	b.quiet()
}

// A settle time does not go on while no plan can be made: the documents may come
// back one by one, the control plane first.
func TestSettleTimeStartsAgainAfterAGap(t *testing.T) {
	b := running(t)
	writes := b.remoteWrites()

	b.delete(newWorkers("w", machineClass, 2))
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.delete(newControlPlane("cp", b.machines[0]))
	b.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	b.advance(10 * settleTime)
	b.create(newControlPlane("cp", b.machines[0]))
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.create(newWorkers("w", machineClass, 2))
	b.until("Ready", metav1.ConditionTrue, "Running")

	if got := b.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// A set that comes back within the settle time was never touched.
func TestSetThatComesBack(t *testing.T) {
	b := running(t)
	writes := b.remoteWrites()

	b.delete(newWorkers("w", machineClass, 2))
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.create(newWorkers("w", machineClass, 2))
	b.advance(settleTime)
	b.until("Ready", metav1.ConditionTrue, "Running")

	if got := b.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// Lowering a class is an update in Omni, and wipes machines.
func TestScalingDownIsDestructive(t *testing.T) {
	b := running(t)
	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(0)) })

	cluster := b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	want := []v1alpha1.PlannedChange{{Action: "Update", Type: "MachineSets.omni.sidero.dev", ID: "demo-w", Destructive: true, Kind: "MachineRemoval"}}

	if diff := cmp.Diff(want, cluster.Status.Plan.Changes); diff != "" {
		t.Error(diff)
	}

	b.advance(settleTime)
	b.until("Ready", metav1.ConditionTrue, "Running")

	if got := b.view().Machines["demo-w"]; got != 0 {
		t.Errorf("%d machines", got)
	}
}

func TestSuspended(t *testing.T) {
	b := running(t)
	before := b.view()
	writes := b.remoteWrites()

	b.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Suspend = true
		o.Spec.Kubernetes.Version = "v1.35.4"
	})

	cluster := b.until("Suspended", metav1.ConditionTrue, "Suspended")
	if plan := cluster.Status.Plan; plan.Updates != 1 || plan.Hash != "" {
		t.Errorf("plan %+v", plan)
	}

	if ready := apimeta.FindStatusCondition(cluster.Status.Conditions, "Ready"); ready.Status != "True" {
		t.Errorf("Ready is %+v", ready)
	}

	if cluster.Status.ObservedGeneration != cluster.Generation {
		t.Errorf("observedGeneration %d of %d", cluster.Status.ObservedGeneration, cluster.Generation)
	}

	b.delete(newWorkers("w", machineClass, 2))
	b.advance(time.Hour)
	b.quiet()

	if diff := cmp.Diff(before, b.view()); diff != "" || b.remoteWrites() != writes {
		t.Errorf("the suspended object changed Omni: %s", diff)
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	if got := b.view().KubernetesVersion; got != "1.35.4" {
		t.Errorf("version %s", got)
	}
}

// A new object that is suspended shows a plan, and Ready says why it is unknown.
func TestSuspendedFromTheStart(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Suspend = true
	b := newBench(t, cluster)
	b.create(newControlPlane("cp", b.machines[0]))

	got := b.until("Ready", metav1.ConditionUnknown, "Suspended")
	if got.Status.Plan.Creates == 0 || b.remoteWrites() != 0 {
		t.Errorf("plan %+v, %d writes", got.Status.Plan, b.remoteWrites())
	}

	b.quiet()
}

func TestConfirmDestructive(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	b.delete(newWorkers("w", machineClass, 2))

	cluster := b.until("Synced", metav1.ConditionFalse, "AwaitingApproval")
	b.advance(time.Hour)
	b.quiet()

	if b.view().Machines["demo-w"] != 2 {
		t.Fatal("destroyed without approval")
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = "something else" })
	b.quiet()
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = cluster.Status.Plan.Hash })
	b.until("Ready", metav1.ConditionTrue, "Running")

	if _, left := b.view().Machines["demo-w"]; left {
		t.Errorf("Omni has %+v", b.view())
	}

	if got := b.get().Status.Plan; got.Approved != nil || got.Hash != "" {
		t.Errorf("approvals that are used up: %+v", got)
	}
}

func TestObserve(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve
	b := newBench(t, cluster)
	b.create(newControlPlane("cp", b.machines[0]))

	got := b.until("Stalled", metav1.ConditionTrue, "Observing")
	if got.Status.Plan.Creates == 0 {
		t.Errorf("plan %+v", got.Status.Plan)
	}

	b.advance(time.Hour)
	b.quiet()

	if b.remoteWrites() != 0 {
		t.Errorf("%d writes to Omni", b.remoteWrites())
	}

	b.delete(newCluster())
	b.untilGone()
}
