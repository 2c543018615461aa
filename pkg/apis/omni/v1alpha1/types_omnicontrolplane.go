package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"
// +k8s:supportsSubresource="/scale"

// OmniControlPlane is the control-plane document of a cluster. Exactly one must name each OmniCluster.
type OmniControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniControlPlaneSpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniControlPlaneStatus `json:"status,omitempty"`
}

// OmniControlPlaneSpec says which machines form the control plane.
type OmniControlPlaneSpec struct {
	// clusterRef names the OmniCluster. It cannot be changed while that counts the object (status.clusterRef).
	// +required
	ClusterRef LocalObjectReference `json:"clusterRef"`

	MachineSetMachines   `json:",inline"`
	MachineConfiguration `json:",inline"`

	// bootstrapSpec restores etcd from a backup when Omni makes the control plane. It can only be set at creation.
	// +optional
	BootstrapSpec *BootstrapSpec `json:"bootstrapSpec,omitempty"`

	// upgradeStrategy says how many machines are upgraded at a time.
	// +optional
	UpgradeStrategy *Strategy `json:"upgradeStrategy,omitempty"`
}

// BootstrapSpec names an etcd backup.
type BootstrapSpec struct {
	// clusterUUID is the UUID of the cluster that made the backup.
	// +required
	ClusterUUID string `json:"clusterUUID"`

	// snapshot is the file name of the backup.
	// +required
	Snapshot string `json:"snapshot"`
}

// OmniControlPlaneStatus is what the controller found.
type OmniControlPlaneStatus struct {
	MachineSetStatusFields `json:",inline"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniControlPlaneList is a list of OmniControlPlanes.
type OmniControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniControlPlanes.
	Items []OmniControlPlane `json:"items"`
}
