package omniworkers

import (
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniWorkers.
func Descriptor() *kit.Descriptor[*omni.OmniWorkers] {
	scale := &kit.Scale[*omni.OmniWorkers]{
		Machines: func(o *omni.OmniWorkers) *omni.MachineSetMachines { return &o.Spec.MachineSetMachines },
		Status:   func(o *omni.OmniWorkers) *omni.MachineSetStatusFields { return &o.Status.MachineSetStatusFields },
		Validate: validation.ValidateOmniWorkersScale,
	}

	return &kit.Descriptor[*omni.OmniWorkers]{
		Kind:      "OmniWorkers",
		Plural:    "omniworkers",
		Singular:  "omniworkers",
		ShortName: "ow",
		New:       func() *omni.OmniWorkers { return &omni.OmniWorkers{} },
		NewList:   func() runtime.Object { return &omni.OmniWorkersList{} },
		Spec:      kit.PartOf(func(o *omni.OmniWorkers) *omni.OmniWorkersSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniWorkers) *omni.OmniWorkersStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniWorkers]{
			Create:       validation.ValidateOmniWorkers,
			Update:       validation.ValidateOmniWorkersUpdate,
			StatusUpdate: validation.ValidateOmniWorkersStatusUpdate,
		},
		Warnings:   validation.WarningsForOmniWorkers,
		Selectable: &kit.SelectableField[*omni.OmniWorkers]{Label: "spec.clusterRef.name", Value: clusterOf},
		Columns:    kit.MachineSetColumns(clusterOf, scale),
		Scale:      scale,
	}
}

func clusterOf(o *omni.OmniWorkers) string { return o.Spec.ClusterRef.Name }
