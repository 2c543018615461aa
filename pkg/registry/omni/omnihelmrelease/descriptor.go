// Package omnihelmrelease describes how the API server serves OmniHelmReleases.
package omnihelmrelease

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniHelmRelease.
func Descriptor() *kit.Descriptor[*v1alpha1.OmniHelmRelease] {
	return &kit.Descriptor[*v1alpha1.OmniHelmRelease]{
		Kind:      "OmniHelmRelease",
		Plural:    "omnihelmreleases",
		Singular:  "omnihelmrelease",
		ShortName: "ohr",
		New:       func() *v1alpha1.OmniHelmRelease { return &v1alpha1.OmniHelmRelease{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniHelmReleaseList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniHelmRelease) *v1alpha1.OmniHelmReleaseSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniHelmRelease) *v1alpha1.OmniHelmReleaseStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniHelmRelease]{
			Create:       validation.ValidateOmniHelmRelease,
			Update:       validation.ValidateOmniHelmReleaseUpdate,
			StatusUpdate: validation.ValidateOmniHelmReleaseStatusUpdate,
		},
		Warnings:       validation.WarningsForOmniHelmRelease,
		UpdateWarnings: validation.WarningsForOmniHelmReleaseUpdate,
		Deletion:       deletionOf,
		Selectable:     kit.ByCluster[*v1alpha1.OmniHelmRelease](),
		Suspended:      func(o *v1alpha1.OmniHelmRelease) bool { return o.Spec.Suspend },
		Columns: []kit.Column[*v1alpha1.OmniHelmRelease]{
			kit.ClusterColumn[*v1alpha1.OmniHelmRelease](),
			{
				Name:        "Chart",
				Description: "Chart that is installed.",
				Cell:        func(o *v1alpha1.OmniHelmRelease) any { return o.Spec.Chart.Chart },
			},
			{
				Name:        "Version",
				Description: "Chart version: the installed one, or before the first installation the one asked for.",
				Cell: func(o *v1alpha1.OmniHelmRelease) any {
					return kit.OrNone(cmp.Or(o.Status.ChartVersion, o.Spec.Chart.Version))
				},
			},
			{
				Name:        "Revision",
				Type:        "integer",
				Description: "Helm's revision of the release; 0 before the first installation.",
				Cell:        func(o *v1alpha1.OmniHelmRelease) any { return int64(o.Status.Revision) },
			},
			{
				Name:        "Helm",
				Description: "Helm's word for the revision: deployed, failed, pending-upgrade and the like; none before Helm was asked.",
				Cell:        func(o *v1alpha1.OmniHelmRelease) any { return kit.OrNone(o.Status.ReleaseStatus) },
			},
		},
	}
}

// deletionOf is what a deletion does to the release.
func deletionOf(o *v1alpha1.OmniHelmRelease) kit.Deletion {
	if o.Spec.DeletionPolicy == v1alpha1.ReleaseOrphan {
		return kit.Deletion{}
	}

	return kit.Deletion{
		Does: fmt.Sprintf("uninstalls release %q in namespace %q of cluster %q", o.EffectiveReleaseName(), o.Spec.Namespace, o.Spec.ClusterRef.Name),
		Keep: "set spec.deletionPolicy: Orphan first to keep it",
	}
}
