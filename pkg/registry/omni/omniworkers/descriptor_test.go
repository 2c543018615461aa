package omniworkers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func classOf(size intstr.IntOrString) v1alpha1.MachineSetMachines {
	return v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "large", Size: &size}}
}

func valid() *v1alpha1.OmniWorkers {
	return &v1alpha1.OmniWorkers{Spec: v1alpha1.OmniWorkersSpec{
		ClusterRef:         v1alpha1.LocalObjectReference{Name: "production"},
		WorkerSetName:      "pool",
		MachineSetMachines: classOf(intstr.FromInt32(3)),
	}}
}

func invalid() *v1alpha1.OmniWorkers {
	o := valid()
	o.Spec.Machines = []string{"30303031-3233-3435-3637-383930313233"}

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*v1alpha1.OmniWorkers]{
		Descriptor: Descriptor(),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniWorkers) { o.Spec.MachineSetMachines = classOf(intstr.FromInt32(5)) },
		BadChange:  func(o *v1alpha1.OmniWorkers) { o.Spec.WorkerSetName = "other" },
		EmptyList:  func(o *v1alpha1.OmniWorkers) { o.Spec.Patches = []v1alpha1.Patch{} },
		Rows: []kittest.Row[*v1alpha1.OmniWorkers]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniWorkers) {},
				Cells:  []any{"Unknown", "<none>", "production", "3", int64(0), "large", "<none>"},
			},
			{
				Name: "ready",
				Change: func(o *v1alpha1.OmniWorkers) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.ReadyReplicas = 3
				},
				Cells: []any{"True", "Succeeded", "production", "3", int64(3), "large", "<none>"},
			},
			{
				Name: "every machine of a class",
				Change: func(o *v1alpha1.OmniWorkers) {
					o.Spec.MachineSetMachines = classOf(intstr.FromString("unlimited"))
				},
				Cells: []any{"Unknown", "<none>", "production", "unlimited", int64(0), "large", "<none>"},
			},
			{
				Name: "listed machines",
				Change: func(o *v1alpha1.OmniWorkers) {
					o.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{"one", "two"}}
				},
				Cells: []any{"Unknown", "<none>", "production", "2", int64(0), "<none>", "<none>"},
			},
		},
	})
}

func TestDeletionOf(t *testing.T) {
	workers := valid()
	workers.Name, workers.Spec.WorkerSetName, workers.Spec.ClusterRef.Name = "w", "", "production"

	if got, want := deletionOf(workers).Does, `destroys worker set "w" of OmniCluster "production" in Omni and wipes its machines, after the settle time`; got != want {
		t.Errorf("got %s", got)
	}

	workers.Status.Replicas = 3
	if got, want := deletionOf(workers).Does, `destroys worker set "w" of OmniCluster "production" in Omni and wipes its 3 machines, after the settle time`; got != want {
		t.Errorf("got %s", got)
	}
}
