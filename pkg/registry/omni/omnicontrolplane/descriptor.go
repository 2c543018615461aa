package omnicontrolplane

import (
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniControlPlane.
func Descriptor() *kit.Descriptor[*omni.OmniControlPlane] {
	scale := &kit.Scale[*omni.OmniControlPlane]{
		Machines: func(o *omni.OmniControlPlane) *omni.MachineSetMachines { return &o.Spec.MachineSetMachines },
		Status:   func(o *omni.OmniControlPlane) *omni.MachineSetStatusFields { return &o.Status.MachineSetStatusFields },
		Validate: validation.ValidateOmniControlPlaneScale,
	}

	return &kit.Descriptor[*omni.OmniControlPlane]{
		Kind:      "OmniControlPlane",
		Plural:    "omnicontrolplanes",
		Singular:  "omnicontrolplane",
		ShortName: "ocp",
		New:       func() *omni.OmniControlPlane { return &omni.OmniControlPlane{} },
		NewList:   func() runtime.Object { return &omni.OmniControlPlaneList{} },
		Spec:      kit.PartOf(func(o *omni.OmniControlPlane) *omni.OmniControlPlaneSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniControlPlane) *omni.OmniControlPlaneStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniControlPlane]{
			Create:       validation.ValidateOmniControlPlane,
			Update:       validation.ValidateOmniControlPlaneUpdate,
			StatusUpdate: validation.ValidateOmniControlPlaneStatusUpdate,
		},
		Warnings:   validation.WarningsForOmniControlPlane,
		Selectable: &kit.SelectableField[*omni.OmniControlPlane]{Label: "spec.clusterRef.name", Value: clusterOf},
		Columns:    kit.MachineSetColumns(clusterOf, scale),
		Scale:      scale,
	}
}

func clusterOf(o *omni.OmniControlPlane) string { return o.Spec.ClusterRef.Name }
