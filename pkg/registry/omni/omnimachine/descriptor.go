package omnimachine

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniMachine.
func Descriptor() *kit.Descriptor[*omni.OmniMachine] {
	return &kit.Descriptor[*omni.OmniMachine]{
		Kind:      "OmniMachine",
		Plural:    "omnimachines",
		Singular:  "omnimachine",
		ShortName: "om",
		New:       func() *omni.OmniMachine { return &omni.OmniMachine{} },
		NewList:   func() runtime.Object { return &omni.OmniMachineList{} },
		Spec:      kit.PartOf(func(o *omni.OmniMachine) *omni.OmniMachineSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniMachine) *omni.OmniMachineStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniMachine]{
			Create:       validation.ValidateOmniMachine,
			Update:       validation.ValidateOmniMachineUpdate,
			StatusUpdate: validation.ValidateOmniMachineStatusUpdate,
		},
		Warnings:   validation.WarningsForOmniMachine,
		Selectable: &kit.SelectableField[*omni.OmniMachine]{Label: "spec.clusterRef.name", Value: clusterOf},
		Columns: []kit.Column[*omni.OmniMachine]{
			kit.ReadyColumn[*omni.OmniMachine](),
			kit.ClusterColumn(clusterOf),
			{
				Name:        "Machine",
				Description: "UUID of the machine.",
				Cell:        func(o *omni.OmniMachine) any { return o.EffectiveMachineID() },
			},
			{
				Name:        "Stage",
				Description: "Omni's stage of the machine.",
				Cell:        func(o *omni.OmniMachine) any { return kit.OrNone(o.Status.Stage) },
			},
			{
				Name:        "Connected",
				Description: "Whether the machine is connected to Omni.",
				Cell:        func(o *omni.OmniMachine) any { return connected(o.Status.Connected) },
			},
		},
	}
}

func clusterOf(o *omni.OmniMachine) string { return o.Spec.ClusterRef.Name }

func connected(known *bool) string {
	if known == nil {
		return kit.OrNone("")
	}

	return strconv.FormatBool(*known)
}
