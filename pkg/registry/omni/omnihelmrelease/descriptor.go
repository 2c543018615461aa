package omnihelmrelease

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniHelmRelease.
func Descriptor() *kit.Descriptor[*omni.OmniHelmRelease] {
	return &kit.Descriptor[*omni.OmniHelmRelease]{
		Kind:      "OmniHelmRelease",
		Plural:    "omnihelmreleases",
		Singular:  "omnihelmrelease",
		ShortName: "ohr",
		New:       func() *omni.OmniHelmRelease { return &omni.OmniHelmRelease{} },
		NewList:   func() runtime.Object { return &omni.OmniHelmReleaseList{} },
		Spec:      kit.PartOf(func(o *omni.OmniHelmRelease) *omni.OmniHelmReleaseSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniHelmRelease) *omni.OmniHelmReleaseStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniHelmRelease]{
			Create:       validation.ValidateOmniHelmRelease,
			Update:       validation.ValidateOmniHelmReleaseUpdate,
			StatusUpdate: validation.ValidateOmniHelmReleaseStatusUpdate,
		},
		Warnings:   validation.WarningsForOmniHelmRelease,
		Selectable: &kit.SelectableField[*omni.OmniHelmRelease]{Label: "spec.clusterRef.name", Value: clusterOf},
		Columns: []kit.Column[*omni.OmniHelmRelease]{
			kit.ReadyColumn[*omni.OmniHelmRelease](),
			kit.ClusterColumn(clusterOf),
			{
				Name:        "Chart",
				Description: "Chart that is installed.",
				Cell:        func(o *omni.OmniHelmRelease) any { return o.Spec.Chart.Chart },
			},
			{
				Name:        "Version",
				Description: "Chart version: the installed one, or before the first installation the one asked for.",
				Cell: func(o *omni.OmniHelmRelease) any {
					return kit.OrNone(cmp.Or(o.Status.ChartVersion, o.Spec.Chart.Version))
				},
			},
			{
				Name:        "Revision",
				Type:        "integer",
				Description: "Helm's revision of the release; 0 before the first installation.",
				Cell:        func(o *omni.OmniHelmRelease) any { return int64(o.Status.Revision) },
			},
			{
				Name:        "Status",
				Description: "Helm's status of the release.",
				Cell:        func(o *omni.OmniHelmRelease) any { return kit.OrNone(o.Status.ReleaseStatus) },
			},
		},
	}
}

func clusterOf(o *omni.OmniHelmRelease) string { return o.Spec.ClusterRef.Name }
