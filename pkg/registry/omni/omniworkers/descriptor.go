// Package omniworkers describes how the API server serves OmniWorkers.
package omniworkers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
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
			Create: validation.ValidateOmniWorkers,
			Update: validation.ValidateOmniWorkersUpdate,
		},
		Warnings:       validation.WarningsForOmniWorkers,
		UpdateWarnings: validation.WarningsForOmniWorkersUpdate,
		Deletion:       deletionOf,
		Selectable:     kit.ByCluster[*v1alpha1.OmniWorkers](),
		Columns:        kit.MachineSetColumns(scale),
		Scale:          scale,
	}
}

// deletionOf is what a deletion does to the set. Its OmniCluster does that, after the settle time and as its changePolicy says.
func deletionOf(o *v1alpha1.OmniWorkers) kit.Deletion {
	machines := "its machines"
	if o.Status.Replicas > 0 {
		machines = "its " + words.Plural(int(o.Status.Replicas), "machine")
	}

	return kit.Deletion{
		Does: fmt.Sprintf("destroys worker set %q of OmniCluster %q in Omni and wipes %s, after the settle time", o.EffectiveWorkerSetName(), o.Spec.ClusterRef.Name, machines),
		Keep: "set spec.suspend: true of the OmniCluster first to hold that up",
	}
}
