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
	f := running(t)
	cluster := f.get()
	status := cluster.Status

	if view := f.view(); view.KubernetesVersion != "1.35.1" || view.Machines["demo-control-planes"] != 1 || view.Machines["demo-w"] != 2 {
		t.Errorf("Omni has %+v", view)
	}

	marks := map[string]string{}
	for key, value := range f.view().Annotations {
		if strings.HasPrefix(key, v1alpha1.GroupName) {
			marks[key] = value
		}
	}

	if diff := cmp.Diff(map[string]string{
		v1alpha1.MarkOwnerUID: "uid-demo", v1alpha1.MarkOwnerNamespace: "team", v1alpha1.MarkOwnerName: "demo", v1alpha1.MarkManagementCluster: "hub",
		v1alpha1.MarkHub: testHub,
	}, marks); diff != "" {
		t.Error(diff)
	}

	if status.ClusterName != "demo" || status.Endpoint != f.omni.Endpoint() || status.OmniClusterID == "" || len(status.TemplateHash) != 64 || status.LastSyncTime == nil {
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

	if !f.hasEvent("Created", `Cluster "demo"`) {
		t.Errorf("no event of the creation: %q", f.events.All())
	}
}

func TestChanged(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"team": "a"} })
	f.until("Ready", metav1.ConditionTrue, "Running")

	if got := f.view().Labels["team"]; got != "a" {
		t.Errorf("label %q", got)
	}

	if !f.hasEvent("Updated", `Cluster "demo"`) {
		t.Errorf("no event of the update: %q", f.events.All())
	}

	f.quiet()

	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	f.eventually("three machines", func() string {
		f.run()

		if f.view().Machines["demo-w"] != 3 {
			return "not yet"
		}

		return ""
	})

	cluster := f.until("Ready", metav1.ConditionTrue, "Running")
	if got := cluster.Status.WorkersRefs[0].Generation; got != 2 {
		t.Errorf("applied generation %d", got)
	}
}

// Somebody changed the cluster past us.
func TestDriftIsCorrected(t *testing.T) {
	f := running(t)
	if err := omnisim.SetKubernetesVersion(t.Context(), f.omni.State(), "demo", "1.35.4"); err != nil {
		t.Fatal(err)
	}

	f.eventually("the version", func() string {
		f.run()

		return strings.TrimPrefix(f.view().KubernetesVersion, "1.35.1")
	})

	if !f.hasEvent("Corrected", `Cluster "demo"; it was changed in Omni`) {
		t.Errorf("no event of the correction: %q", f.events.All())
	}
}

// A change that is only half applied when it is taken back is nobody else's.
func TestTakenBackIsNoCorrection(t *testing.T) {
	f := running(t)
	heal := f.omni.Inject(omnisim.Fault{Method: "Update", After: 1, Code: codes.InvalidArgument})
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"team": "a"} })
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(3)) })
	f.until("Synced", metav1.ConditionFalse, "Refused")
	heal()

	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(2)) })
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = nil })
	f.until("Ready", metav1.ConditionTrue, "Running")

	if f.hasEvent("Corrected") {
		t.Errorf("events: %q", f.events.All())
	}
}

func TestRestartWritesNothing(t *testing.T) {
	f := running(t)
	f.restart()
	f.quiet()
}

func TestDestroyedSetSettlesFirst(t *testing.T) {
	f := running(t)
	f.delete(newWorkers("w", machineClass, 2))
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"harmless": "yes"} })

	cluster := f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	if f.view().Labels["harmless"] != "yes" {
		t.Error("the harmless change waits as well")
	}

	if plan := cluster.Status.Plan; plan.Hash == "" || plan.Destroys < 1 || !plan.Changes[0].Destructive {
		t.Errorf("plan %+v", plan)
	}

	f.advance(settleTime - time.Second)

	if result := f.run(); result.RequeueAfter > time.Second+time.Millisecond {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}

	if f.view().Machines["demo-w"] != 2 {
		t.Fatal("destroyed before the settle time")
	}

	f.quiet()
	f.advance(time.Second)
	cluster = f.until("Ready", metav1.ConditionTrue, "Running")

	if _, left := f.view().Machines["demo-w"]; left {
		t.Errorf("Omni has %+v", f.view())
	}

	if cluster.Status.WorkersRefs != nil || cluster.Status.Plan.Hash != "" {
		t.Errorf("%+v", cluster.Status)
	}

	if !f.hasEvent("Destroyed", `MachineSet "demo-w"`) {
		t.Errorf("no event of the destruction: %q", f.events.All())
	}

	f.quiet()
}

// A settle time does not go on while no plan can be made: the documents may come
// back one by one, the control plane first.
func TestSettleTimeStartsAgainAfterAGap(t *testing.T) {
	f := running(t)
	writes := f.remoteWrites()

	f.delete(newWorkers("w", machineClass, 2))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.delete(newControlPlane("cp", f.machines[0]))
	f.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	f.advance(10 * settleTime)
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.create(newWorkers("w", machineClass, 2))
	f.until("Ready", metav1.ConditionTrue, "Running")

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// A set that comes back within the settle time was never touched.
func TestSetThatComesBack(t *testing.T) {
	f := running(t)
	writes := f.remoteWrites()

	f.delete(newWorkers("w", machineClass, 2))
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.create(newWorkers("w", machineClass, 2))
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// Lowering a class is an update in Omni, and wipes machines.
func TestScalingDownIsDestructive(t *testing.T) {
	f := running(t)
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(0)) })

	cluster := f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	want := []v1alpha1.PlannedChange{{Action: "Update", Type: "MachineSets.omni.sidero.dev", ID: "demo-w", Destructive: true, Kind: "MachineRemoval"}}

	if diff := cmp.Diff(want, cluster.Status.Plan.Changes); diff != "" {
		t.Error(diff)
	}

	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	if got := f.view().Machines["demo-w"]; got != 0 {
		t.Errorf("%d machines", got)
	}
}

func TestSuspended(t *testing.T) {
	f := running(t)
	before := f.view()
	writes := f.remoteWrites()

	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Suspend = true
		o.Spec.Kubernetes.Version = "v1.35.4"
	})

	cluster := f.until("Suspended", metav1.ConditionTrue, "Suspended")
	if plan := cluster.Status.Plan; plan.Updates != 1 || plan.Hash != "" {
		t.Errorf("plan %+v", plan)
	}

	if ready := apimeta.FindStatusCondition(cluster.Status.Conditions, "Ready"); ready.Status != "True" {
		t.Errorf("Ready is %+v", ready)
	}

	if cluster.Status.ObservedGeneration != cluster.Generation {
		t.Errorf("observedGeneration %d of %d", cluster.Status.ObservedGeneration, cluster.Generation)
	}

	f.delete(newWorkers("w", machineClass, 2))
	f.advance(time.Hour)
	f.quiet()

	if diff := cmp.Diff(before, f.view()); diff != "" || f.remoteWrites() != writes {
		t.Errorf("the suspended object changed Omni: %s", diff)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

	if got := f.view().KubernetesVersion; got != "1.35.4" {
		t.Errorf("version %s", got)
	}
}

// A new object that is suspended shows a plan, and Ready says why it is unknown.
func TestSuspendedFromTheStart(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Suspend = true
	f := newFixture(t, cluster)
	f.create(newControlPlane("cp", f.machines[0]))

	got := f.until("Ready", metav1.ConditionUnknown, "Suspended")
	if got.Status.Plan.Creates == 0 || f.remoteWrites() != 0 {
		t.Errorf("plan %+v, %d writes", got.Status.Plan, f.remoteWrites())
	}

	f.quiet()
}

func TestConfirmDestructive(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.delete(newWorkers("w", machineClass, 2))

	cluster := f.until("Synced", metav1.ConditionFalse, "AwaitingApproval")
	f.advance(time.Hour)
	f.quiet()

	if f.view().Machines["demo-w"] != 2 {
		t.Fatal("destroyed without approval")
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = "something else" })
	f.quiet()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = cluster.Status.Plan.Hash })
	f.until("Ready", metav1.ConditionTrue, "Running")

	if _, left := f.view().Machines["demo-w"]; left {
		t.Errorf("Omni has %+v", f.view())
	}

	if got := f.get().Status.Plan; got.Approved != nil || got.Hash != "" {
		t.Errorf("approvals that are used up: %+v", got)
	}
}

func TestObserve(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve
	f := newFixture(t, cluster)
	f.create(newControlPlane("cp", f.machines[0]))

	got := f.until("Stalled", metav1.ConditionTrue, "Observing")
	if got.Status.Plan.Creates == 0 {
		t.Errorf("plan %+v", got.Status.Plan)
	}

	f.advance(time.Hour)
	f.quiet()

	if f.remoteWrites() != 0 {
		t.Errorf("%d writes to Omni", f.remoteWrites())
	}

	f.delete(newCluster())
	f.untilGone()
}
