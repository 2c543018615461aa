package apiserver

import (
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// NewAdmissionOptions returns the admission chain in its order: the namespace has to exist, the
// hub's mutating policies and webhooks, its validating policies and webhooks. Without these, the
// policies of a hub would silently not apply to our kinds.
func NewAdmissionOptions() *genericoptions.AdmissionOptions {
	return genericoptions.NewAdmissionOptions()
}
