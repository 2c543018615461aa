// Package omnisecretsync describes how the API server serves OmniSecretSyncs.
package omnisecretsync

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor describes OmniSecretSync. now is the time from which the age of the last sync is counted.
func Descriptor(now func() time.Time) *kit.Descriptor[*v1alpha1.OmniSecretSync] {
	return &kit.Descriptor[*v1alpha1.OmniSecretSync]{
		Kind:      "OmniSecretSync",
		Plural:    "omnisecretsyncs",
		Singular:  "omnisecretsync",
		ShortName: "oss",
		New:       func() *v1alpha1.OmniSecretSync { return &v1alpha1.OmniSecretSync{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniSecretSyncList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniSecretSync) *v1alpha1.OmniSecretSyncSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniSecretSync) *v1alpha1.OmniSecretSyncStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniSecretSync]{
			Create: validation.ValidateOmniSecretSync,
			Update: validation.ValidateOmniSecretSyncUpdate,
		},
		Deletion:   deletionOf,
		Selectable: kit.ByCluster[*v1alpha1.OmniSecretSync](),
		Columns: []kit.Column[*v1alpha1.OmniSecretSync]{
			kit.ClusterColumn[*v1alpha1.OmniSecretSync](),
			{
				Name:        "Source",
				Description: "Secret in this namespace that is copied.",
				Cell:        func(o *v1alpha1.OmniSecretSync) any { return o.Spec.SourceSecretRef.Name },
			},
			{
				Name:        "Target",
				Description: "Namespace and name of the Secret in the workload cluster.",
				Cell:        func(o *v1alpha1.OmniSecretSync) any { return target(o.Spec.TargetSecretRef) },
			},
			{
				Name:        "Synced",
				Description: "How long ago the Secret was last written.",
				Cell:        func(o *v1alpha1.OmniSecretSync) any { return kit.Since(o.Status.LastSyncTime, now()) },
			},
		},
	}
}

func target(ref v1alpha1.NamespacedSecretReference) string { return ref.Namespace + "/" + ref.Name }

// deletionOf is what a deletion does to the copy.
func deletionOf(o *v1alpha1.OmniSecretSync) kit.Deletion {
	if o.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		return kit.Deletion{}
	}

	return kit.Deletion{
		Does: fmt.Sprintf("deletes the copy, Secret %q of cluster %q", target(o.Spec.TargetSecretRef), o.Spec.ClusterRef.Name),
		Keep: "set spec.deletionPolicy: Orphan first to keep it",
	}
}
