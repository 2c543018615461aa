package v1alpha1

// MachineSetMachines says where the machines of a set come from.
type MachineSetMachines struct {
	// machines are the UUIDs of the machines of the set, in any spelling. Removing one wipes that machine. They cannot
	// be combined with machineClass; a control plane needs one of the two.
	// +optional
	// +listType=set
	Machines []string `json:"machines,omitzero"`

	// machineClass takes the machines from a machine class of Omni. It cannot be combined with machines.
	// +optional
	MachineClass *MachineClass `json:"machineClass,omitempty"`
}

// MachineConfiguration is what clusters, machine sets and machines can say of the Talos configuration.
type MachineConfiguration struct {
	// labels are copied to the Omni resource. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// annotations are copied to the Omni resource. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`

	// patches are Talos machine configuration patches, applied in order after those of the wider level.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitzero"`

	// systemExtensions are the Talos system extensions. Unset leaves the wider level's choice; an empty list removes them all.
	// +optional
	// +listType=atomic
	SystemExtensions []string `json:"systemExtensions,omitzero"`

	// kernelArgs are extra kernel arguments. Unset leaves the wider level's choice; an empty list removes them
	// all. They are for listed machines only, not for those of a machineClass.
	// +optional
	// +listType=atomic
	KernelArgs []string `json:"kernelArgs,omitzero"`
}

// MachineSetStatusFields is the status that control planes and worker sets share.
type MachineSetStatusFields struct {
	ReconcileStatus `json:",inline"`

	// clusterRef is the OmniCluster that counts this set.
	// +optional
	ClusterRef *LocalObjectReference `json:"clusterRef,omitempty"`

	// workerSetName is the set's name in Omni.
	// +optional
	WorkerSetName string `json:"workerSetName,omitempty"`

	// replicas is the number of machines in the set.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of healthy machines in the set.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// selector is the label selector of the set's machines in Omni, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}
