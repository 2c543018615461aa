package omnicontrolplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func classOf(size intstr.IntOrString) omni.MachineSetMachines {
	return omni.MachineSetMachines{MachineClass: &omni.MachineClass{Name: "large", Size: &size}}
}

func valid() *omni.OmniControlPlane {
	return &omni.OmniControlPlane{Spec: omni.OmniControlPlaneSpec{
		ClusterRef: omni.LocalObjectReference{Name: "production"},

		MachineSetMachines: classOf(intstr.FromInt32(3)),
	}}
}

func invalid() *omni.OmniControlPlane {
	o := valid()
	o.Spec.Machines = []string{"30303031-3233-3435-3637-383930313233"}

	return o
}

func TestDescriptor(t *testing.T) {
	kittest.Run(t, kittest.Case[*omni.OmniControlPlane]{
		Descriptor:   Descriptor(),
		Valid:        valid,
		Invalid:      invalid,
		Change:       func(o *omni.OmniControlPlane) { o.Spec.MachineSetMachines = classOf(intstr.FromInt32(5)) },
		BadChange:    func(o *omni.OmniControlPlane) { o.Spec.MachineClass = nil },
		EmptyList:    func(o *omni.OmniControlPlane) { o.Spec.Patches = []omni.Patch{} },
		OmitsNothing: func(o *omni.OmniControlPlane) { o.Spec.SystemExtensions = []string{} },
		Rows: []kittest.Row[*omni.OmniControlPlane]{
			{
				Name:   "new",
				Change: func(*omni.OmniControlPlane) {},
				Cells:  []any{"Unknown", "production", "3", int64(0), "large", "<none>"},
			},
			{
				Name: "ready",
				Change: func(o *omni.OmniControlPlane) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.ReadyReplicas = 3
				},
				Cells: []any{"True", "production", "3", int64(3), "large", "Succeeded"},
			},
			{
				Name: "every machine of a class",
				Change: func(o *omni.OmniControlPlane) {
					o.Spec.MachineSetMachines = classOf(intstr.FromString("unlimited"))
				},
				Cells: []any{"Unknown", "production", "unlimited", int64(0), "large", "<none>"},
			},
			{
				Name: "listed machines",
				Change: func(o *omni.OmniControlPlane) {
					o.Spec.MachineSetMachines = omni.MachineSetMachines{Machines: []string{"one", "two"}}
				},
				Cells: []any{"Unknown", "production", "2", int64(0), "<none>", "<none>"},
			},
		},
	})
}
