// Package omnicontrolplane describes how the API server serves OmniControlPlanes.
package omnicontrolplane

import (
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniControlPlane.
func Descriptor() *kit.Descriptor[*v1alpha1.OmniControlPlane] {
	scale := &kit.Scale[*v1alpha1.OmniControlPlane]{
		Machines: func(o *v1alpha1.OmniControlPlane) *v1alpha1.MachineSetMachines { return &o.Spec.MachineSetMachines },
		Status: func(o *v1alpha1.OmniControlPlane) *v1alpha1.MachineSetStatusFields {
			return &o.Status.MachineSetStatusFields
		},
		Validate: validation.ValidateOmniControlPlaneScale,
	}

	return &kit.Descriptor[*v1alpha1.OmniControlPlane]{
		Kind:      "OmniControlPlane",
		Plural:    "omnicontrolplanes",
		Singular:  "omnicontrolplane",
		ShortName: "ocp",
		New:       func() *v1alpha1.OmniControlPlane { return &v1alpha1.OmniControlPlane{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniControlPlaneList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniControlPlane) *v1alpha1.OmniControlPlaneSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniControlPlane) *v1alpha1.OmniControlPlaneStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniControlPlane]{
			Create: validation.ValidateOmniControlPlane,
			Update: validation.ValidateOmniControlPlaneUpdate,
		},
		Warnings:       validation.WarningsForOmniControlPlane,
		UpdateWarnings: validation.WarningsForOmniControlPlaneUpdate,
		Selectable:     kit.ByCluster[*v1alpha1.OmniControlPlane](),
		Columns:        kit.MachineSetColumns(scale),
		Scale:          scale,
	}
}
