package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniControlPlane is the control-plane document of a cluster. Exactly one must name each OmniCluster.
type OmniControlPlane struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniControlPlaneSpec

	// status is what the controller found and did. It is read-only.
	Status OmniControlPlaneStatus
}

// OmniControlPlaneSpec says which machines form the control plane.
type OmniControlPlaneSpec struct {
	// clusterRef names the OmniCluster.
	ClusterRef LocalObjectReference

	MachineSetMachines
	MachineConfiguration

	// bootstrapSpec restores the cluster from an etcd backup when it is first made. It can only be set at creation.
	BootstrapSpec *BootstrapSpec

	// upgradeStrategy says how many machines are upgraded at a time.
	UpgradeStrategy *Strategy
}

// BootstrapSpec names an etcd backup.
type BootstrapSpec struct {
	// clusterUUID is the UUID of the cluster that made the backup.
	ClusterUUID string

	// snapshot is the file name of the backup.
	Snapshot string
}

// OmniControlPlaneStatus is what the controller found.
type OmniControlPlaneStatus struct {
	MachineSetStatusFields
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniControlPlaneList is a list of OmniControlPlanes.
type OmniControlPlaneList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniControlPlanes.
	Items []OmniControlPlane
}
