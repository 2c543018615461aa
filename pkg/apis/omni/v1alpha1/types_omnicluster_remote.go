package v1alpha1

// ClusterPhaseDestroying is the phase of a cluster from when its teardown was requested in Omni.
const ClusterPhaseDestroying = "Destroying"

// OmniClusterRemoteStatus is what Omni says of the cluster.
type OmniClusterRemoteStatus struct {
	// phase is Omni's phase of the cluster, such as ScalingUp or Running.
	// +optional
	Phase string `json:"phase,omitempty"`

	// kubernetesVersion is the Kubernetes version that Omni is to run. During an upgrade machines may still run
	// the one before.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// talosVersion is the Talos version that Omni is to run. During an upgrade machines may still run the one before.
	// +optional
	TalosVersion string `json:"talosVersion,omitempty"`

	// kubernetesAPIReady says whether the cluster's Kubernetes API answers.
	// +optional
	KubernetesAPIReady bool `json:"kubernetesAPIReady,omitempty"`

	// controlPlaneReady says whether the control plane is ready.
	// +optional
	ControlPlaneReady bool `json:"controlPlaneReady,omitempty"`

	// machines counts the machines of the cluster.
	// +optional
	Machines MachineCounts `json:"machines,omitzero"`

	// upgrades are the Kubernetes and Talos upgrades, the last one included.
	// +optional
	Upgrades UpgradeStatuses `json:"upgrades,omitzero"`

	// machineSets are the control plane and the worker sets.
	// +optional
	// +listType=map
	// +listMapKey=name
	MachineSets []MachineSetStatus `json:"machineSets,omitempty"`

	// machineStates are the machines that an OmniMachine describes.
	// +optional
	// +listType=map
	// +listMapKey=id
	MachineStates []MachineState `json:"machineStates,omitempty"`
}

// MachineCounts counts machines.
type MachineCounts struct {
	// total is the number of machines that belong.
	Total int32 `json:"total"`
	// connected is the number of machines connected to Omni.
	Connected int32 `json:"connected"`
	// healthy is the number of machines that are healthy.
	Healthy int32 `json:"healthy"`
	// requested is the number of machines asked for.
	Requested int32 `json:"requested"`
}

// UpgradeStatuses are the upgrades of a cluster.
type UpgradeStatuses struct {
	// kubernetes is the Kubernetes upgrade.
	// +optional
	Kubernetes *UpgradeStatus `json:"kubernetes,omitempty"`
	// talos is the Talos upgrade.
	// +optional
	Talos *UpgradeStatus `json:"talos,omitempty"`
}

// UpgradeStatus is one upgrade.
type UpgradeStatus struct {
	// phase is Omni's phase of the upgrade.
	// +optional
	Phase string `json:"phase,omitempty"`
	// step is what the upgrade does now, and what it waits for.
	// +optional
	Step string `json:"step,omitempty"`
	// error is why the upgrade failed, or the last error of one that Omni goes on trying.
	// +optional
	Error string `json:"error,omitempty"`
	// version is the version that was reached last.
	// +optional
	Version string `json:"version,omitempty"`
}

// MachineSetStatus is one machine set.
type MachineSetStatus struct {
	// name of the set: control-planes, or the worker set's name.
	Name string `json:"name"`
	// phase is Omni's phase of the set.
	// +optional
	Phase string `json:"phase,omitempty"`
	// ready says whether every machine of the set is ready.
	Ready bool `json:"ready"`
	// machines counts the machines of the set.
	// +optional
	Machines MachineCounts `json:"machines,omitzero"`
	// lockedUpdates is the number of machines whose update waits for a lock to be removed.
	// +optional
	LockedUpdates int32 `json:"lockedUpdates,omitempty"`
}

// MachineState is one machine.
type MachineState struct {
	// id is the machine's UUID.
	ID string `json:"id"`
	// stage is Omni's stage of the machine, such as Installing or Running.
	// +optional
	Stage string `json:"stage,omitempty"`
	// connected says whether the machine is connected to Omni.
	Connected bool `json:"connected"`
	// ready says whether the machine is ready.
	Ready bool `json:"ready"`
}
