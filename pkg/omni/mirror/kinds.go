package mirror

import (
	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// scope says how a resource type tells which cluster a resource belongs to.
type scope int

const (
	scopeID      scope = iota // the ID is the cluster's name
	scopeLabel                // the cluster label
	scopeMachine              // the ID is a machine's UUID
)

// mirroredKind is one resource type that the mirror watches.
type mirroredKind struct {
	resourceType resource.Type
	scope        scope
}

// mirroredKinds is every type that planning and observing read. All are in
// Omni's namespace "default", and the Reader role may list and watch them.
func mirroredKinds() []mirroredKind {
	return []mirroredKind{
		{omnires.ClusterType, scopeID},
		{omnires.MachineSetType, scopeLabel},
		{omnires.MachineSetNodeType, scopeLabel},
		{omnires.ConfigPatchType, scopeLabel},
		{omnires.ExtensionsConfigurationType, scopeLabel},
		{omnires.KubernetesManifestGroupType, scopeLabel},
		{omnires.KubernetesHealthCheckType, scopeLabel},
		{omnires.KernelArgsType, scopeMachine},
		{omnires.ClusterStatusType, scopeID},
		{omnires.MachineSetStatusType, scopeLabel},
		{omnires.ClusterMachineStatusType, scopeLabel},
		{omnires.ControlPlaneStatusType, scopeLabel},
		{omnires.LoadBalancerStatusType, scopeID},
		{omnires.KubernetesUpgradeStatusType, scopeID},
		{omnires.TalosUpgradeStatusType, scopeID},
		{omnires.MachineStatusType, scopeMachine},
		{omnires.ClusterUUIDType, scopeID},
	}
}
