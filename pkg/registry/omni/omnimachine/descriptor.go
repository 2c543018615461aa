// Package omnimachine describes how the API server serves OmniMachines.
package omnimachine

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniMachine.
func Descriptor() *kit.Descriptor[*v1alpha1.OmniMachine] {
	return &kit.Descriptor[*v1alpha1.OmniMachine]{
		Kind:      "OmniMachine",
		Plural:    "omnimachines",
		Singular:  "omnimachine",
		ShortName: "om",
		New:       func() *v1alpha1.OmniMachine { return &v1alpha1.OmniMachine{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniMachineList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniMachine) *v1alpha1.OmniMachineSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniMachine) *v1alpha1.OmniMachineStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniMachine]{
			Create: validation.ValidateOmniMachine,
			Update: validation.ValidateOmniMachineUpdate,
		},
		Warnings:   validation.WarningsForOmniMachine,
		Deletion:   deletionOf,
		Selectable: kit.ByCluster[*v1alpha1.OmniMachine](),
		Columns: []kit.Column[*v1alpha1.OmniMachine]{
			kit.ClusterColumn[*v1alpha1.OmniMachine](),
			{
				Name:        "Machine",
				Description: "UUID of the machine.",
				Cell:        func(o *v1alpha1.OmniMachine) any { return o.EffectiveMachineID() },
			},
			{
				Name:        "Stage",
				Description: "Omni's stage of the machine.",
				Cell:        func(o *v1alpha1.OmniMachine) any { return kit.OrNone(o.Status.Stage) },
			},
			{
				Name:        "Connected",
				Description: "Whether the machine is connected to Omni.",
				Cell:        func(o *v1alpha1.OmniMachine) any { return connected(o.Status.Connected) },
			},
		},
	}
}

func connected(known *bool) string {
	if known == nil {
		return kit.OrNone("")
	}

	return strconv.FormatBool(*known)
}

// deletionOf is what a deletion does to the machine. Its OmniCluster does that, after the settle time.
func deletionOf(o *v1alpha1.OmniMachine) kit.Deletion {
	return kit.Deletion{
		Does: fmt.Sprintf("takes the settings of machine %q back in Omni (patches, labels, extensions), after the settle time, which may reboot it", o.EffectiveMachineID()),
		Keep: fmt.Sprintf("set spec.suspend: true of OmniCluster %q first to hold that up", o.Spec.ClusterRef.Name),
	}
}
