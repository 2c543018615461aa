package omnicluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor describes OmniCluster. requireConfirmation is the meaning of an unset
// spec.deletePolicy.requireConfirmation.
func Descriptor(requireConfirmation bool) *kit.Descriptor[*v1alpha1.OmniCluster] {
	return &kit.Descriptor[*v1alpha1.OmniCluster]{
		Kind:      "OmniCluster",
		Plural:    "omniclusters",
		Singular:  "omnicluster",
		ShortName: "ocl",
		New:       func() *v1alpha1.OmniCluster { return &v1alpha1.OmniCluster{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniClusterList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniCluster) *v1alpha1.OmniClusterSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniCluster) *v1alpha1.OmniClusterStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniCluster]{
			Create:       validation.ValidateOmniCluster,
			Update:       validation.ValidateOmniClusterUpdate,
			StatusUpdate: validation.ValidateOmniClusterStatusUpdate,
		},
		Warnings:       validation.WarningsForOmniCluster,
		UpdateWarnings: validation.WarningsForOmniClusterUpdate,
		Record:         func(o, old *v1alpha1.OmniCluster, user string) { recordOverride(o, old, user, time.Now()) },
		Kept:           keepOverride,
		DeleteGuard:    func(_ context.Context, o *v1alpha1.OmniCluster) error { return confirmDeletion(o, requireConfirmation) },
		Deletion:       deletionOf,
		Selectable: &kit.SelectableField[*v1alpha1.OmniCluster]{
			Label: v1alpha1.ConnectionRefField,
			Value: func(o *v1alpha1.OmniCluster) string { return o.Spec.ConnectionRef.Name },
		},
		Columns: columns(),
	}
}

func columns() []kit.Column[*v1alpha1.OmniCluster] {
	return []kit.Column[*v1alpha1.OmniCluster]{
		kit.ReadyColumn[*v1alpha1.OmniCluster](),
		kit.ReasonColumn[*v1alpha1.OmniCluster]("Status", false),
		{
			Name:        "Kubernetes",
			Description: "Kubernetes version asked for, behind the one that Omni was told to run if that is another.",
			Cell: func(o *v1alpha1.OmniCluster) any {
				return version(o, func(omni *v1alpha1.OmniClusterRemoteStatus) string { return omni.KubernetesVersion }, o.Spec.Kubernetes.Version)
			},
		},
		{
			Name:        "Talos",
			Description: "Talos version asked for, behind the one that Omni was told to run if that is another.",
			Cell: func(o *v1alpha1.OmniCluster) any {
				return version(o, func(omni *v1alpha1.OmniClusterRemoteStatus) string { return omni.TalosVersion }, o.Spec.Talos.Version)
			},
		},
		{
			Name:        "Control Plane",
			Description: "Healthy and requested machines of the control plane.",
			Cell:        func(o *v1alpha1.OmniCluster) any { return machines(o, isControlPlane) },
		},
		{
			Name:        "Workers",
			Description: "Healthy and requested machines of all worker sets.",
			Cell:        func(o *v1alpha1.OmniCluster) any { return machines(o, isWorkerSet) },
		},
		{
			Name:        "Connection",
			Description: "OmniConnection that leads to the cluster's Omni.",
			Cell:        func(o *v1alpha1.OmniCluster) any { return o.Spec.ConnectionRef.Name },
		},
		{
			Name:        "Plan",
			Description: "Changes that Omni has not seen yet: + creates, ~ updates, - destroys, ! how many of them take machines away, or objects out of the running cluster, and h how many wait in an OmniRolloutPolicy.",
			Wide:        true,
			Cell:        func(o *v1alpha1.OmniCluster) any { return plan(o.Status.Plan) },
		},
		{
			Name:        "Held",
			Description: "When changes that wait in an OmniRolloutPolicy may begin, as far as it is known; else what they wait for.",
			Wide:        true,
			Cell:        func(o *v1alpha1.OmniCluster) any { return held(o.Status.Rollout) },
		},
		kit.MessageColumn[*v1alpha1.OmniCluster](),
	}
}
