package omniworkers

import (
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniWorkers.
func Descriptor() *kit.Descriptor[*v1alpha1.OmniWorkers] {
	scale := &kit.Scale[*v1alpha1.OmniWorkers]{
		Machines: func(o *v1alpha1.OmniWorkers) *v1alpha1.MachineSetMachines { return &o.Spec.MachineSetMachines },
		Status: func(o *v1alpha1.OmniWorkers) *v1alpha1.MachineSetStatusFields {
			return &o.Status.MachineSetStatusFields
		},
		Validate: validation.ValidateOmniWorkersScale,
	}

	return &kit.Descriptor[*v1alpha1.OmniWorkers]{
		Kind:      "OmniWorkers",
		Plural:    "omniworkers",
		Singular:  "omniworkers",
		ShortName: "ow",
		New:       func() *v1alpha1.OmniWorkers { return &v1alpha1.OmniWorkers{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniWorkersList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniWorkers) *v1alpha1.OmniWorkersSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniWorkers) *v1alpha1.OmniWorkersStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniWorkers]{
			Create:       validation.ValidateOmniWorkers,
			Update:       validation.ValidateOmniWorkersUpdate,
			StatusUpdate: validation.ValidateOmniWorkersStatusUpdate,
		},
		Warnings: validation.WarningsForOmniWorkers,
		KeepInstead: func(*v1alpha1.OmniWorkers) string {
			return "the machine set would be torn down in Omni, and its machines wiped, if its OmniCluster applies that. To keep it, keep this object"
		},
		Selectable: kit.ByCluster[*v1alpha1.OmniWorkers](),
		Columns:    kit.MachineSetColumns(scale),
		Scale:      scale,
	}
}
