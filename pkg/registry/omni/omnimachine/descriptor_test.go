package omnimachine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

const (
	machineID = "30303031-3233-3435-3637-383930313233"
	otherID   = "30303031-3233-3435-3637-383930313234"
)

func valid() *v1alpha1.OmniMachine {
	return &v1alpha1.OmniMachine{Spec: v1alpha1.OmniMachineSpec{
		ClusterRef: v1alpha1.LocalObjectReference{Name: "production"},
		MachineID:  machineID,
	}}
}

func invalid() *v1alpha1.OmniMachine {
	o := valid()
	o.Spec.MachineID = "not a UUID"

	return o
}

func TestDescriptor(t *testing.T) {
	yes, no := true, false

	kittest.Run(t, kittest.Case[*v1alpha1.OmniMachine]{
		Descriptor: Descriptor(),
		Valid:      valid,
		Invalid:    invalid,
		Change:     func(o *v1alpha1.OmniMachine) { o.Spec.Install = &v1alpha1.MachineInstall{Disk: "/dev/nvme0n1"} },
		BadChange:  func(o *v1alpha1.OmniMachine) { o.Spec.MachineID = otherID },
		EmptyList:  func(o *v1alpha1.OmniMachine) { o.Spec.Patches = []v1alpha1.Patch{} },
		Rows: []kittest.Row[*v1alpha1.OmniMachine]{
			{
				Name:   "new",
				Change: func(*v1alpha1.OmniMachine) {},
				Cells:  []any{"Unknown", "<none>", "production", machineID, "<none>", "<none>", "<none>"},
			},
			{
				Name: "named after the machine, gone from Omni",
				Change: func(o *v1alpha1.OmniMachine) {
					o.Spec.MachineID = ""
					o.Status.Connected = &no
				},
				Cells: []any{"Unknown", "<none>", "production", "foo", "<none>", "false", "<none>"},
			},
			{
				Name: "running",
				Change: func(o *v1alpha1.OmniMachine) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.Stage = "RUNNING"
					o.Status.Connected = &yes
				},
				Cells: []any{"True", "Succeeded", "production", machineID, "RUNNING", "true", "<none>"},
			},
		},
	})
}

func TestDeletionOf(t *testing.T) {
	machine := valid()
	machine.Name, machine.Spec.MachineID, machine.Spec.ClusterRef.Name = "m", "", "production"

	if got, want := deletionOf(machine).Does, `takes the settings of machine "m" back in Omni (patches, labels, extensions), after the settle time, which may reboot it`; got != want {
		t.Errorf("got %s", got)
	}
}
