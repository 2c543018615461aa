package omnikubeconfigexport

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniKubeconfigExport. now is what expiry and rotation are
// counted from.
func Descriptor(now func() time.Time) *kit.Descriptor[*omni.OmniKubeconfigExport] {
	return &kit.Descriptor[*omni.OmniKubeconfigExport]{
		Kind:      "OmniKubeconfigExport",
		Plural:    "omnikubeconfigexports",
		Singular:  "omnikubeconfigexport",
		ShortName: "oke",
		New:       func() *omni.OmniKubeconfigExport { return &omni.OmniKubeconfigExport{} },
		NewList:   func() runtime.Object { return &omni.OmniKubeconfigExportList{} },
		Spec:      kit.PartOf(func(o *omni.OmniKubeconfigExport) *omni.OmniKubeconfigExportSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniKubeconfigExport) *omni.OmniKubeconfigExportStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniKubeconfigExport]{
			Create:       validation.ValidateOmniKubeconfigExport,
			Update:       validation.ValidateOmniKubeconfigExportUpdate,
			StatusUpdate: validation.ValidateOmniKubeconfigExportStatusUpdate,
		},
		Warnings:   validation.WarningsForOmniKubeconfigExport,
		Selectable: &kit.SelectableField[*omni.OmniKubeconfigExport]{Label: "spec.clusterRef.name", Value: clusterOf},
		Columns: []kit.Column[*omni.OmniKubeconfigExport]{
			kit.ReadyColumn[*omni.OmniKubeconfigExport](),
			kit.ClusterColumn(clusterOf),
			{
				Name:        "Secret",
				Description: "Secret that the kubeconfig is written to.",
				Cell:        func(o *omni.OmniKubeconfigExport) any { return o.Spec.TargetSecretRef.Name },
			},
			{
				Name:        "Expires",
				Description: "When the kubeconfig expires.",
				Cell:        func(o *omni.OmniKubeconfigExport) any { return kit.Until(o.Status.ExpirationTime, now()) },
			},
			{
				Name:        "Rotates",
				Description: "When the kubeconfig is replaced.",
				Wide:        true,
				Cell:        func(o *omni.OmniKubeconfigExport) any { return kit.Until(o.Status.NextRotationTime, now()) },
			},
		},
	}
}

func clusterOf(o *omni.OmniKubeconfigExport) string { return o.Spec.ClusterRef.Name }
