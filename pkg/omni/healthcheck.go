package omni

import (
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/resource/typed"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
)

// KubernetesHealthCheckStatus is the result of a KubernetesHealthCheck, whose ID it has, in the namespace ephemeral. Omni
// writes it from 1.11 on.
type KubernetesHealthCheckStatus = typed.Resource[KubernetesHealthCheckStatusSpec, KubernetesHealthCheckStatusExtension]

// HealthCheckFailed is the State of a check that failed.
const HealthCheckFailed = 2

// KubernetesHealthCheckStatusSpec has what is read of the message. The tags are the field numbers of Omni's message.
type KubernetesHealthCheckStatusSpec struct {
	// State is 0 if it is unknown, 1 while the check runs, then HealthCheckFailed or 3.
	State int32 `protobuf:"1" yaml:"state,omitempty"`
	// Error is why the check failed.
	Error string `protobuf:"2" yaml:"error,omitempty"`
	// Output is what its job printed.
	Output string `protobuf:"3" yaml:"output,omitempty"`
}

// DeepCopy returns the value itself: it has no references.
func (s KubernetesHealthCheckStatusSpec) DeepCopy() KubernetesHealthCheckStatusSpec { return s }

// KubernetesHealthCheckStatusExtension describes the type to the library.
type KubernetesHealthCheckStatusExtension struct{}

// ResourceDefinition implements typed.Extension.
func (KubernetesHealthCheckStatusExtension) ResourceDefinition() meta.ResourceDefinitionSpec {
	return meta.ResourceDefinitionSpec{Type: KubernetesHealthCheckStatusType, DefaultNamespace: resources.EphemeralNamespace}
}

// NewKubernetesHealthCheckStatus returns the empty result of a check.
func NewKubernetesHealthCheckStatus(check string) *KubernetesHealthCheckStatus {
	RegisterTypes()

	return typed.NewResource[KubernetesHealthCheckStatusSpec, KubernetesHealthCheckStatusExtension](
		resource.NewMetadata(resources.EphemeralNamespace, KubernetesHealthCheckStatusType, check, resource.VersionUndefined),
		KubernetesHealthCheckStatusSpec{})
}
