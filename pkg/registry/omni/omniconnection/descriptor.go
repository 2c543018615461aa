package omniconnection

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// Descriptor is all that is special about OmniConnection. now is what the expiry is counted from.
func Descriptor(now func() time.Time) *kit.Descriptor[*omni.OmniConnection] {
	return &kit.Descriptor[*omni.OmniConnection]{
		Kind:      "OmniConnection",
		Plural:    "omniconnections",
		Singular:  "omniconnection",
		ShortName: "oconn",
		New:       func() *omni.OmniConnection { return &omni.OmniConnection{} },
		NewList:   func() runtime.Object { return &omni.OmniConnectionList{} },
		Spec:      kit.PartOf(func(o *omni.OmniConnection) *omni.OmniConnectionSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *omni.OmniConnection) *omni.OmniConnectionStatus { return &o.Status }),
		Validation: kit.Validation[*omni.OmniConnection]{
			Create:       validation.ValidateOmniConnection,
			Update:       validation.ValidateOmniConnectionUpdate,
			StatusUpdate: validation.ValidateOmniConnectionStatusUpdate,
		},
		Warnings: validation.WarningsForOmniConnection,
		Columns:  columns(now),
	}
}

func columns(now func() time.Time) []kit.Column[*omni.OmniConnection] {
	return []kit.Column[*omni.OmniConnection]{
		kit.ReadyColumn[*omni.OmniConnection](),
		{
			Name:        "Endpoint",
			Description: "URL of Omni.",
			Cell:        func(o *omni.OmniConnection) any { return o.Spec.Endpoint },
		},
		{
			Name:        "Service Account",
			Description: "Name of the Omni service account whose key is used.",
			Cell:        func(o *omni.OmniConnection) any { return serviceAccount(o) },
		},
		{
			Name:        "Expires",
			Description: "When the service account key expires.",
			Cell:        func(o *omni.OmniConnection) any { return expires(o, now()) },
		},
		kit.ReasonColumn[*omni.OmniConnection]("Reason", true),
	}
}

func serviceAccount(o *omni.OmniConnection) string {
	if o.Status.ServiceAccount == nil {
		return kit.OrNone("")
	}

	return kit.OrNone(o.Status.ServiceAccount.Name)
}

func expires(o *omni.OmniConnection, now time.Time) string {
	if o.Status.ServiceAccount == nil {
		return kit.OrNone("")
	}

	return kit.Until(o.Status.ServiceAccount.ExpirationTime, now)
}
