package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniWorkers is one worker set of a cluster. Any number may name the same OmniCluster.
type OmniWorkers struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniWorkersSpec

	// status is what the controller found and did. It is read-only.
	Status OmniWorkersStatus
}

// OmniWorkersSpec says which machines form the worker set.
type OmniWorkersSpec struct {
	// clusterRef names the OmniCluster.
	ClusterRef LocalObjectReference

	// workerSetName is the set's name in Omni, unique in the cluster: letters, digits, - and _, at most 63,
	// not control-planes. Defaults to metadata.name. It cannot be changed.
	WorkerSetName string

	MachineSetMachines
	MachineConfiguration

	// updateStrategy says how many machines take a new configuration at a time. Unset means Rolling.
	UpdateStrategy *Strategy

	// upgradeStrategy says how many machines are upgraded at a time.
	UpgradeStrategy *Strategy

	// deleteStrategy says how many machines are removed at a time.
	DeleteStrategy *Strategy
}

// OmniWorkersStatus is what the controller found.
type OmniWorkersStatus struct {
	MachineSetStatusFields
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniWorkersList is a list of OmniWorkers objects.
type OmniWorkersList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniWorkers objects.
	Items []OmniWorkers
}
