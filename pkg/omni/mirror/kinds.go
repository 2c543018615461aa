package mirror

import (
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// clusterSource is where a resource of one type has the name of its cluster.
type clusterSource int

const (
	fromID      clusterSource = iota // the ID is the cluster's name
	fromLabel                        // the cluster label
	fromMachine                      // the ID is a machine's UUID
)

// mirroredKind is one resource type that the mirror watches.
type mirroredKind struct {
	resourceType resource.Type
	clusterFrom  clusterSource
}

// mirroredKinds returns every type that planning and observing read. All are in Omni's namespace "default", and the
// Reader role may list and watch them.
func mirroredKinds() []mirroredKind {
	return []mirroredKind{
		{omnires.ClusterType, fromID},
		{omnires.MachineSetType, fromLabel},
		{omnires.MachineSetNodeType, fromLabel},
		{omnires.ConfigPatchType, fromLabel},
		{omnires.ExtensionsConfigurationType, fromLabel},
		{omnires.KubernetesManifestGroupType, fromLabel},
		{omnires.KubernetesHealthCheckType, fromLabel},
		{omnires.KernelArgsType, fromMachine},
		{omnires.ClusterStatusType, fromID},
		{omnires.MachineSetStatusType, fromLabel},
		{omnires.ClusterMachineStatusType, fromLabel},
		{omnires.ControlPlaneStatusType, fromLabel},
		{omnires.LoadBalancerStatusType, fromID},
		{omnires.KubernetesUpgradeStatusType, fromID},
		{omnires.TalosUpgradeStatusType, fromID},
		{omnires.MachineStatusType, fromMachine},
		{omnires.ClusterUUIDType, fromID},
		{omnires.ClusterKubernetesManifestsStatusType, fromID},
		{omnires.ClusterMachineRequestStatusType, fromLabel},
	}
}

// selection returns which resources of a type are watched: all, but of the requests for machines only those whose machine does not
// belong to a cluster yet. The others say nothing that the machine's own status does not, and a fleet has one for each machine.
func selection(resourceType resource.Type) []state.WatchKindOption {
	if resourceType != omnires.ClusterMachineRequestStatusType {
		return nil
	}

	return []state.WatchKindOption{state.WatchWithLabelQuery(resource.LabelExists(omnires.LabelMachineRequestInUse, resource.NotMatches))}
}
