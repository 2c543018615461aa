package omniconnection

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor describes OmniConnection. now is the time from which the expiry is counted. The delete guard looks at the clusters.
func Descriptor(now func() time.Time, clusters kit.Clusters) *kit.Descriptor[*v1alpha1.OmniConnection] {
	return &kit.Descriptor[*v1alpha1.OmniConnection]{
		Kind:      "OmniConnection",
		Plural:    "omniconnections",
		Singular:  "omniconnection",
		ShortName: "oconn",
		New:       func() *v1alpha1.OmniConnection { return &v1alpha1.OmniConnection{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniConnectionList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniConnection) *v1alpha1.OmniConnectionSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniConnection) *v1alpha1.OmniConnectionStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniConnection]{
			Create: validation.ValidateOmniConnection,
			Update: validation.ValidateOmniConnectionUpdate,
		},
		Warnings: validation.WarningsForOmniConnection,
		DeleteGuard: func(ctx context.Context, o *v1alpha1.OmniConnection) error {
			return confirmDeletion(ctx, o, clusters)
		},
		Columns: columns(now),
	}
}

func columns(now func() time.Time) []kit.Column[*v1alpha1.OmniConnection] {
	return []kit.Column[*v1alpha1.OmniConnection]{
		kit.ReadyColumn[*v1alpha1.OmniConnection](),
		{
			Name:        "Endpoint",
			Description: "URL of Omni.",
			Cell:        func(o *v1alpha1.OmniConnection) any { return o.Spec.Endpoint },
		},
		{
			Name:        "Service Account",
			Description: "Name of the Omni service account whose key is used.",
			Cell:        func(o *v1alpha1.OmniConnection) any { return serviceAccount(o) },
		},
		{
			Name:        "Expires",
			Description: "When the service account key expires.",
			Cell:        func(o *v1alpha1.OmniConnection) any { return expires(o, now()) },
		},
		kit.ReasonColumn[*v1alpha1.OmniConnection]("Reason", true),
	}
}

func serviceAccount(o *v1alpha1.OmniConnection) string {
	if o.Status.ServiceAccount == nil {
		return kit.OrNone("")
	}

	return kit.OrNone(o.Status.ServiceAccount.Name)
}

func expires(o *v1alpha1.OmniConnection, now time.Time) string {
	if o.Status.ServiceAccount == nil {
		return kit.OrNone("")
	}

	return kit.Until(o.Status.ServiceAccount.ExpirationTime, now)
}
