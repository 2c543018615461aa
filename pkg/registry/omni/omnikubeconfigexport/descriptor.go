package omnikubeconfigexport

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor describes OmniKubeconfigExport. now is the time from which expiry and rotation are counted.
func Descriptor(now func() time.Time) *kit.Descriptor[*v1alpha1.OmniKubeconfigExport] {
	return &kit.Descriptor[*v1alpha1.OmniKubeconfigExport]{
		Kind:      "OmniKubeconfigExport",
		Plural:    "omnikubeconfigexports",
		Singular:  "omnikubeconfigexport",
		ShortName: "oke",
		New:       func() *v1alpha1.OmniKubeconfigExport { return &v1alpha1.OmniKubeconfigExport{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniKubeconfigExportList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniKubeconfigExport) *v1alpha1.OmniKubeconfigExportSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniKubeconfigExport) *v1alpha1.OmniKubeconfigExportStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniKubeconfigExport]{
			Create:       validation.ValidateOmniKubeconfigExport,
			Update:       validation.ValidateOmniKubeconfigExportUpdate,
			StatusUpdate: validation.ValidateOmniKubeconfigExportStatusUpdate,
		},
		Warnings:   validation.WarningsForOmniKubeconfigExport,
		Selectable: kit.ByCluster[*v1alpha1.OmniKubeconfigExport](),
		Columns: []kit.Column[*v1alpha1.OmniKubeconfigExport]{
			kit.ReadyColumn[*v1alpha1.OmniKubeconfigExport](),
			kit.ClusterColumn[*v1alpha1.OmniKubeconfigExport](),
			{
				Name:        "Secret",
				Description: "Secret that the kubeconfig is written to.",
				Cell:        func(o *v1alpha1.OmniKubeconfigExport) any { return o.Spec.TargetSecretRef.Name },
			},
			{
				Name:        "Expires",
				Description: "When the kubeconfig expires.",
				Cell:        func(o *v1alpha1.OmniKubeconfigExport) any { return kit.Until(o.Status.ExpirationTime, now()) },
			},
			{
				Name:        "Rotates",
				Description: "When the kubeconfig is replaced.",
				Wide:        true,
				Cell:        func(o *v1alpha1.OmniKubeconfigExport) any { return kit.Until(o.Status.NextRotationTime, now()) },
			},
		},
	}
}
