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
func (b *bench) wantGenerations(want map[string]int64) {
	b.t.Helper()

	b.eventually("the documents that Omni has", func() string {
		b.run()

		return cmp.Diff(want, generations(b.get().Status))
	})
}

// label edits a document of workers in a way that Omni takes at once.
func (b *bench) label(name, value string) {
	b.t.Helper()
	change(b, name, &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Labels = map[string]string{"label": value} })
}

// While something else of the cluster waits, a document that Omni has is applied, and one whose change waits is not.
func TestDocumentsAreAppliedOneByOne(t *testing.T) {
	b := running(t)
	b.setByHand("by-hand", b.machines[1])

	cluster := b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	hash := cluster.Status.TemplateHash

	b.label("w", "new")
	b.wantGenerations(map[string]int64{"cp": 1, "w": 2})
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.quiet()

	// What is written back of it is no second writer's work: Omni did not have all of this template before.
	if got := b.get().Status.TemplateHash; got != hash {
		t.Errorf("hash of a template that is not applied: %s", got)
	}

	resize := func(size int32) {
		change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size = new(intstr.FromInt32(size)) })
	}

	resize(1)
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.quiet()
	b.wantGenerations(map[string]int64{"cp": 1, "w": 2})

	b.advance(settleTime)
	b.wantGenerations(map[string]int64{"cp": 1, "w": 3})

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	resize(0)
	b.advance(settleTime)
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.quiet()
	b.wantGenerations(map[string]int64{"cp": 1, "w": 3})

	b.approvePlan()
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantGenerations(map[string]int64{"cp": 1, "w": 4})
}

// Omni may take long to let a machine go.
func TestDocumentsAreAppliedWhileAMachineLeaves(t *testing.T) {
	listed := newWorkers("listed", "", 0)
	b := newBench(t, newCluster(), newWorkers("w", machineClass, 1))
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{b.machines[1], b.machines[2]}}
	b.create(newControlPlane("cp", b.machines[0]), listed)
	b.until("Ready", metav1.ConditionTrue, "Running")

	b.omni.Pause()
	change(b, "listed", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = o.Spec.Machines[:1] })
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.advance(settleTime)
	b.until("Synced", metav1.ConditionFalse, "Progressing")

	b.label("w", "new")
	b.wantGenerations(map[string]int64{"cp": 1, "listed": 1, "w": 2})
	b.until("Synced", metav1.ConditionFalse, "Progressing")

	b.omni.Resume()
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantGenerations(map[string]int64{"cp": 1, "listed": 2, "w": 2})
	b.quiet()
}

// Under the policy Observe a document that asks for a change is not applied; one that asks for nothing is.
func TestDocumentsOfAnObservedCluster(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve })
	b.label("w", "new")
	b.until("Stalled", metav1.ConditionTrue, "Observing")
	change(b, "cp", &v1alpha1.OmniControlPlane{}, func(*v1alpha1.OmniControlPlane) {})
	b.wantGenerations(map[string]int64{"cp": 2, "w": 1})
	b.quiet()
}
