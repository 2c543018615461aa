package omnicluster

import (
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniCluster. requireConfirmation is what
// spec.deletePolicy.requireConfirmation means where it is unset.
func Descriptor(requireConfirmation bool) *kit.Descriptor[*omni.OmniCluster] {
	return &kit.Descriptor[*omni.OmniCluster]{
		Kind:      "OmniCluster",
		Plural:    "omniclusters",
		Singular:  "omnicluster",
		ShortName: "ocl",
		New:       func() *omni.OmniCluster { return &omni.OmniCluster{} },
		NewList:   func() runtime.Object { return &omni.OmniClusterList{} },
		Spec:      kit.PartOf(func(o *omni.OmniCluster) *omni.OmniClusterSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniCluster) *omni.OmniClusterStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniCluster]{
			Create:       validation.ValidateOmniCluster,
			Update:       validation.ValidateOmniClusterUpdate,
			StatusUpdate: validation.ValidateOmniClusterStatusUpdate,
		},
		Warnings:    validation.WarningsForOmniCluster,
		DeleteGuard: func(o *omni.OmniCluster) error { return confirmDeletion(o, requireConfirmation) },
		Selectable: &kit.SelectableField[*omni.OmniCluster]{
			Label: "spec.connectionRef.name",
			Value: func(o *omni.OmniCluster) string { return o.Spec.ConnectionRef.Name },
		},
		Columns: columns(),
	}
}

func columns() []kit.Column[*omni.OmniCluster] {
	return []kit.Column[*omni.OmniCluster]{
		kit.ReadyColumn[*omni.OmniCluster](),
		kit.ReasonColumn[*omni.OmniCluster]("Status", false),
		{
			Name:        "Kubernetes",
			Description: "Kubernetes version asked for.",
			Cell:        func(o *omni.OmniCluster) any { return o.Spec.Kubernetes.Version },
		},
		{
			Name:        "Talos",
			Description: "Talos version asked for.",
			Cell:        func(o *omni.OmniCluster) any { return o.Spec.Talos.Version },
		},
		{
			Name:        "Control Plane",
			Description: "Healthy and requested machines of the control plane.",
			Cell:        func(o *omni.OmniCluster) any { return machines(o, isControlPlane) },
		},
		{
			Name:        "Workers",
			Description: "Healthy and requested machines of all worker sets.",
			Cell:        func(o *omni.OmniCluster) any { return machines(o, isWorkerSet) },
		},
		{
			Name:        "Connection",
			Description: "OmniConnection that leads to the cluster's Omni.",
			Cell:        func(o *omni.OmniCluster) any { return o.Spec.ConnectionRef.Name },
		},
		{
			Name:        "Plan",
			Description: "Changes that Omni has not seen yet: + creates, ~ updates, - destroys, and ! how many of them take machines away, or objects out of the running cluster.",
			Wide:        true,
			Cell:        func(o *omni.OmniCluster) any { return plan(o.Status.Plan) },
		},
		kit.MessageColumn[*omni.OmniCluster](),
	}
}
