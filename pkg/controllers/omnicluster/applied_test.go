package omnicluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// generations returns the generations of the documents that a status says Omni has, by name.
func generations(status v1alpha1.OmniClusterStatus) map[string]int64 {
	found := map[string]int64{}
	if status.ControlPlaneRef != nil {
		found[status.ControlPlaneRef.Name] = status.ControlPlaneRef.Generation
	}

	for _, ref := range status.WorkersRefs {
		found[ref.Name] = ref.Generation
	}

	return found
}

// wantGenerations waits for the generations of the documents that Omni has.
func (f *fixture) wantGenerations(want map[string]int64) {
	f.t.Helper()

	f.eventually("the documents that Omni has", func() string {
		f.run()

		return cmp.Diff(want, generations(f.get().Status))
	})
}

// label edits a document of workers in a way that Omni takes at once.
func (f *fixture) label(name, value string) {
	f.t.Helper()
	change(f, name, &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Labels = map[string]string{"label": value} })
}

// While something else of the cluster waits, a document that Omni has is applied, and one whose change waits is not.
func TestDocumentsAreAppliedOneByOne(t *testing.T) {
	f := running(t)
	f.setByHand("by-hand", f.machines[1])

	cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	hash := cluster.Status.TemplateHash

	f.label("w", "new")
	f.wantGenerations(map[string]int64{"cp": 1, "w": 2})
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.quiet()

	// What is written back of it is no second writer's work: Omni did not have all of this template before.
	if got := f.get().Status.TemplateHash; got != hash {
		t.Errorf("hash of a template that is not applied: %s", got)
	}

	resize := func(size int32) {
		change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(size)) })
	}

	resize(1)
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.quiet()
	f.wantGenerations(map[string]int64{"cp": 1, "w": 2})

	f.advance(settleTime)
	f.wantGenerations(map[string]int64{"cp": 1, "w": 3})

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	resize(0)
	f.advance(settleTime)
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.quiet()
	f.wantGenerations(map[string]int64{"cp": 1, "w": 3})

	f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantGenerations(map[string]int64{"cp": 1, "w": 4})
}

// Omni may take long to let a machine go.
func TestDocumentsAreAppliedWhileAMachineLeaves(t *testing.T) {
	listed := newWorkers("listed", "", 0)
	f := newFixture(t, newCluster(), newWorkers("w", machineClass, 1))
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{f.machines[1], f.machines[2]}}
	f.create(newControlPlane("cp", f.machines[0]), listed)
	f.until("Ready", metav1.ConditionTrue, "Running")

	f.omni.Pause()
	change(f, "listed", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = o.Spec.Machines[:1] })
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Synced", metav1.ConditionFalse, "Progressing")

	f.label("w", "new")
	f.wantGenerations(map[string]int64{"cp": 1, "listed": 1, "w": 2})
	f.until("Synced", metav1.ConditionFalse, "Progressing")

	f.omni.Resume()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantGenerations(map[string]int64{"cp": 1, "listed": 2, "w": 2})
	f.quiet()
}

// Under the policy Observe a document that asks for a change is not applied; one that asks for nothing is.
func TestDocumentsOfAnObservedCluster(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve })
	f.label("w", "new")
	f.until("Stalled", metav1.ConditionTrue, "Observing")
	change(f, "cp", &v1alpha1.OmniControlPlane{}, func(*v1alpha1.OmniControlPlane) {})
	f.wantGenerations(map[string]int64{"cp": 2, "w": 1})
	f.quiet()
}
