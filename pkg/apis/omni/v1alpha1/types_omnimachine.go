package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// OmniMachine holds the settings of one machine that a control plane or worker set lists.
type OmniMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniMachineSpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniMachineStatus `json:"status,omitempty"`
}

// OmniMachineSpec holds the settings of one machine.
type OmniMachineSpec struct {
	// clusterRef names the OmniCluster. It cannot be changed while that counts the object (status.clusterRef).
	// +required
	ClusterRef LocalObjectReference `json:"clusterRef"`

	// machineID is the machine's UUID. Defaults to metadata.name. It cannot be changed.
	// +optional
	MachineID string `json:"machineID,omitempty"`

	// locked keeps updates and upgrades away from the machine. It is refused by Omni for a control-plane machine.
	// +optional
	Locked bool `json:"locked"`

	// install says how Talos is installed.
	// +optional
	Install *MachineInstall `json:"install,omitempty"`

	MachineConfiguration `json:",inline"`
}

// MachineInstall says how Talos is installed.
type MachineInstall struct {
	// disk is the device that Talos is installed on, such as /dev/sda.
	// +optional
	Disk string `json:"disk,omitempty"`

	// diskSelector is a CEL expression that chooses the device, such as disk.transport == 'nvme' && !disk.readonly. It needs
	// Omni 1.11 or later. One of disk and diskSelector can be set.
	// +optional
	DiskSelector string `json:"diskSelector,omitempty"`
}

// OmniMachineStatus is what the controller found.
type OmniMachineStatus struct {
	ReconcileStatus `json:",inline"`

	// clusterRef is the OmniCluster that counts this machine.
	// +optional
	ClusterRef *LocalObjectReference `json:"clusterRef,omitempty"`

	// machineID is the machine's UUID.
	// +optional
	MachineID string `json:"machineID,omitempty"`

	// stage is Omni's stage of the machine, such as Installing or Running.
	// +optional
	Stage string `json:"stage,omitempty"`

	// connected says whether the machine is connected to Omni. Unset means unknown.
	// +optional
	Connected *bool `json:"connected,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniMachineList is a list of OmniMachines.
type OmniMachineList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniMachines.
	Items []OmniMachine `json:"items"`
}
