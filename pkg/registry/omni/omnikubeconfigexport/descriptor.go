// Package omnikubeconfigexport describes how the API server serves OmniKubeconfigExports.
package omnikubeconfigexport

import (
	"fmt"
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
			Create: validation.ValidateOmniKubeconfigExport,
			Update: validation.ValidateOmniKubeconfigExportUpdate,
		},
		Warnings:   validation.WarningsForOmniKubeconfigExport,
		Deletion:   deletionOf,
		Selectable: kit.ByCluster[*v1alpha1.OmniKubeconfigExport](),
		Columns: []kit.Column[*v1alpha1.OmniKubeconfigExport]{
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

// deletionOf is what a deletion does to the Secret.
func deletionOf(o *v1alpha1.OmniKubeconfigExport) kit.Deletion {
	if o.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		return kit.Deletion{}
	}

	return kit.Deletion{
		Does: fmt.Sprintf("deletes Secret %q with the kubeconfig of cluster %q", o.EffectiveTarget().String(), o.Spec.ClusterRef.Name),
		Keep: "set spec.deletionPolicy: Orphan first to keep it",
	}
}
