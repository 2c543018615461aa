package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniMachine holds the settings of one machine that a control plane or worker set lists.
type OmniMachine struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniMachineSpec

	// status is what the controller found and did. It is read-only.
	Status OmniMachineStatus
}

// OmniMachineSpec holds the settings of one machine.
type OmniMachineSpec struct {
	// clusterRef names the OmniCluster.
	ClusterRef LocalObjectReference

	// machineID is the machine's UUID. Defaults to metadata.name. It cannot be changed.
	MachineID string

	// locked keeps updates and upgrades away from the machine. It is refused by Omni for a control-plane machine.
	Locked bool

	// install says how Talos is installed.
	Install MachineInstall

	MachineConfiguration
}

// MachineInstall says how Talos is installed.
type MachineInstall struct {
	// disk is the device that Talos is installed on, such as /dev/sda.
	Disk string
}

// OmniMachineStatus is what the controller found.
type OmniMachineStatus struct {
	ReconcileStatus

	// clusterRef is the OmniCluster that counts this machine.
	ClusterRef *LocalObjectReference

	// machineID is the machine's UUID.
	MachineID string

	// stage is Omni's stage of the machine, such as Installing or Running.
	Stage string

	// connected says whether the machine is connected to Omni. Unset means unknown.
	Connected *bool
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniMachineList is a list of OmniMachines.
type OmniMachineList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniMachines.
	Items []OmniMachine
}
