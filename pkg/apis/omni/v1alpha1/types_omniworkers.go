package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"
// +k8s:supportsSubresource="/scale"

// OmniWorkers is one worker set of a cluster. Any number may name the same OmniCluster.
type OmniWorkers struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniWorkersSpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniWorkersStatus `json:"status,omitempty"`
}

// OmniWorkersSpec says which machines form the worker set.
type OmniWorkersSpec struct {
	// clusterRef names the OmniCluster. It cannot be changed while that counts the object (status.clusterRef).
	// +required
	ClusterRef LocalObjectReference `json:"clusterRef"`

	// workerSetName is the set's name in Omni, unique in the cluster: letters, digits, - and _, at most 63,
	// not control-planes. Defaults to metadata.name. It cannot be changed.
	// +optional
	WorkerSetName string `json:"workerSetName,omitempty"`

	MachineSetMachines   `json:",inline"`
	MachineConfiguration `json:",inline"`

	// updateStrategy says how many machines take a new configuration at a time. Unset means Rolling.
	// +optional
	UpdateStrategy *Strategy `json:"updateStrategy,omitempty"`

	// upgradeStrategy says how many machines are upgraded at a time.
	// +optional
	UpgradeStrategy *Strategy `json:"upgradeStrategy,omitempty"`

	// deleteStrategy says how many machines are removed at a time.
	// +optional
	DeleteStrategy *Strategy `json:"deleteStrategy,omitempty"`
}

// OmniWorkersStatus is what the controller found.
type OmniWorkersStatus struct {
	MachineSetStatusFields `json:",inline"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniWorkersList is a list of OmniWorkers objects.
type OmniWorkersList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniWorkers objects.
	Items []OmniWorkers `json:"items"`
}
