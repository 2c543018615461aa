package omnimachine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

const (
	machineID = "30303031-3233-3435-3637-383930313233"
	otherID   = "30303031-3233-3435-3637-383930313234"
)

func valid() *omni.OmniMachine {
	return &omni.OmniMachine{Spec: omni.OmniMachineSpec{
		ClusterRef: omni.LocalObjectReference{Name: "production"},
		MachineID:  machineID,
	}}
}

func invalid() *omni.OmniMachine {
	o := valid()
	o.Spec.MachineID = "not a UUID"

	return o
}

func TestDescriptor(t *testing.T) {
	yes, no := true, false

	kittest.Run(t, kittest.Case[*omni.OmniMachine]{
		Descriptor:   Descriptor(),
		Valid:        valid,
		Invalid:      invalid,
		Change:       func(o *omni.OmniMachine) { o.Spec.Install.Disk = "/dev/nvme0n1" },
		BadChange:    func(o *omni.OmniMachine) { o.Spec.MachineID = otherID },
		EmptyList:    func(o *omni.OmniMachine) { o.Spec.Patches = []omni.Patch{} },
		OmitsNothing: func(o *omni.OmniMachine) { o.Spec.KernelArgs = []string{} },
		Rows: []kittest.Row[*omni.OmniMachine]{
			{
				Name:   "new",
				Change: func(*omni.OmniMachine) {},
				Cells:  []any{"Unknown", "production", machineID, "<none>", "<none>"},
			},
			{
				Name: "named after the machine, gone from Omni",
				Change: func(o *omni.OmniMachine) {
					o.Spec.MachineID = ""
					o.Status.Connected = &no
				},
				Cells: []any{"Unknown", "production", "foo", "<none>", "false"},
			},
			{
				Name: "running",
				Change: func(o *omni.OmniMachine) {
					o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}}
					o.Status.Stage = "RUNNING"
					o.Status.Connected = &yes
				},
				Cells: []any{"True", "production", machineID, "RUNNING", "true"},
			},
		},
	})
}
