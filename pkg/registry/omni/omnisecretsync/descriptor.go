package omnisecretsync

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniSecretSync. now is what the last sync is counted from.
func Descriptor(now func() time.Time) *kit.Descriptor[*omni.OmniSecretSync] {
	return &kit.Descriptor[*omni.OmniSecretSync]{
		Kind:      "OmniSecretSync",
		Plural:    "omnisecretsyncs",
		Singular:  "omnisecretsync",
		ShortName: "oss",
		New:       func() *omni.OmniSecretSync { return &omni.OmniSecretSync{} },
		NewList:   func() runtime.Object { return &omni.OmniSecretSyncList{} },
		Spec:      kit.PartOf(func(o *omni.OmniSecretSync) *omni.OmniSecretSyncSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniSecretSync) *omni.OmniSecretSyncStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniSecretSync]{
			Create:       validation.ValidateOmniSecretSync,
			Update:       validation.ValidateOmniSecretSyncUpdate,
			StatusUpdate: validation.ValidateOmniSecretSyncStatusUpdate,
		},
		Warnings:   validation.WarningsForOmniSecretSync,
		Selectable: &kit.SelectableField[*omni.OmniSecretSync]{Label: "spec.clusterRef.name", Value: clusterOf},
		Columns: []kit.Column[*omni.OmniSecretSync]{
			kit.ReadyColumn[*omni.OmniSecretSync](),
			kit.ClusterColumn(clusterOf),
			{
				Name:        "Source",
				Description: "Secret in this namespace that is copied.",
				Cell:        func(o *omni.OmniSecretSync) any { return o.Spec.SourceSecretRef.Name },
			},
			{
				Name:        "Target",
				Description: "Namespace and name of the Secret in the workload cluster.",
				Cell:        func(o *omni.OmniSecretSync) any { return target(o.Spec.TargetSecretRef) },
			},
			{
				Name:        "Synced",
				Description: "How long ago the Secret was last written.",
				Cell:        func(o *omni.OmniSecretSync) any { return kit.Since(o.Status.LastSyncTime, now()) },
			},
		},
	}
}

func clusterOf(o *omni.OmniSecretSync) string { return o.Spec.ClusterRef.Name }

func target(ref omni.NamespacedSecretReference) string { return ref.Namespace + "/" + ref.Name }
