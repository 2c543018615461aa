package omni

// MachineSetMachines says where the machines of a set come from.
type MachineSetMachines struct {
	// machines are the UUIDs of the machines of the set. Removing one wipes that machine. They cannot be combined
	// with machineClass; a control plane needs one of the two.
	Machines []string

	// machineClass takes the machines from a machine class of Omni. It cannot be combined with machines.
	MachineClass *MachineClass
}

// MachineConfiguration is what clusters, machine sets and machines can say of the Talos configuration.
type MachineConfiguration struct {
	// labels are copied to the Omni resource. The prefix omni.sidero.dev/ is Omni's own and refused.
	Labels map[string]string

	// annotations are copied to the Omni resource. The prefix omni.sidero.dev/ is Omni's own and refused.
	Annotations map[string]string

	// patches are Talos machine configuration patches, applied in order after those of the wider level.
	Patches []Patch

	// systemExtensions are the Talos system extensions. Unset leaves the wider level's choice; an empty list removes them all.
	SystemExtensions []string

	// kernelArgs are extra kernel arguments. Unset leaves the wider level's choice; an empty list removes them
	// all. They are for listed machines only, not for those of a machineClass.
	KernelArgs []string
}

// MachineSetStatusFields is the status that control planes and worker sets share.
type MachineSetStatusFields struct {
	ReconcileStatus

	// clusterRef is the OmniCluster that counts this set.
	ClusterRef *LocalObjectReference

	// workerSetName is the set's name in Omni.
	WorkerSetName string

	// replicas is the number of machines in the set.
	Replicas int32

	// readyReplicas is the number of healthy machines in the set.
	ReadyReplicas int32

	// selector is the label selector of the set's machines in Omni, for the scale subresource.
	Selector string
}
