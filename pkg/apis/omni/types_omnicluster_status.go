package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OmniClusterStatus is what the controller found and did.
type OmniClusterStatus struct {
	ReconcileStatus

	// clusterName is the cluster's name in Omni.
	ClusterName string

	// connectionRef is the connection that was last used.
	ConnectionRef *LocalObjectReference

	// endpoint is the URL of the Omni that holds the cluster.
	Endpoint string

	// omniClusterID is the cluster's UUID in Omni. A cluster that is deleted and made again has another one.
	OmniClusterID string

	// controlPlaneRef is the OmniControlPlane that was last applied.
	ControlPlaneRef *AppliedReference

	// workersRefs are the OmniWorkers that were last applied.
	WorkersRefs []AppliedReference

	// machineRefs are the OmniMachines that were last applied.
	MachineRefs []AppliedReference

	// templateHash is the sha256 of the template that was last applied.
	TemplateHash string

	// appliedMachineSets are the machine sets, with their machines, that Omni has from this object. A destroying
	// change of anything else (made by hand in Omni, or by documents that this status does not know, as after the
	// restore of a backup) waits for spec.approvedPlan under every change policy.
	AppliedMachineSets []AppliedMachineSet

	// appliedManifests are the IDs of the manifest groups of mode full that Omni has from this object. When such a
	// group goes, Omni removes its objects from the cluster: one that this list does not name goes only with
	// spec.approvedPlan.
	AppliedManifests []string

	// adopting is true from the moment an existing cluster is taken over (spec.adopt) until the first plan without
	// changes. Every change that destroys anything waits for spec.approvedPlan meanwhile.
	Adopting bool

	// starting is true from the moment the cluster is made or taken over until Omni has seen Kubernetes work in it (a
	// KubernetesUpgradeStatus that was Done). Until then the word of Omni's load balancer, which says healthy before its
	// first check, does not make it Available.
	Starting bool

	// lastSyncTime is when a change was last applied to Omni.
	LastSyncTime *metav1.Time

	// plan is what has to change in Omni.
	Plan *OmniClusterPlan

	// refusals are the changes that Omni refused when they were last tried, at most 10. What does not depend on them
	// is applied; they are tried again when something changes, and at the sync interval.
	Refusals []RefusedChange

	// omni is what Omni says of the cluster.
	Omni *OmniClusterRemoteStatus
}

// AppliedReference names an object and the state of it that was applied.
type AppliedReference struct {
	// name of the object.
	Name string

	// uid of the object.
	UID string

	// generation of the object that was applied.
	Generation int64
}

// AppliedMachineSet is a machine set as it was last applied.
type AppliedMachineSet struct {
	// id of the machine set in Omni.
	ID string

	// size is the machine class and count of a set that takes its machines from a class, such as "large/3" or
	// "large/unlimited". Empty for a set with listed machines.
	Size string

	// machines are the listed machines, by UUID.
	Machines []string
}

// OmniClusterPlan is what has to change in Omni.
type OmniClusterPlan struct {
	// hash identifies the destroying changes that need approval; where none does, all destroying changes. It is
	// empty if there are none. Write it to spec.approvedPlan to approve them.
	Hash string

	// creates is the number of Omni resources to create.
	Creates int32

	// updates is the number of Omni resources to update.
	Updates int32

	// destroys is the number of Omni resources to destroy.
	Destroys int32

	// destructive is the number of changes, of all three kinds, that take machines away, or objects out of the
	// running cluster. While a cluster is being adopted every destroy counts.
	Destructive int32

	// changes are the changes one by one, destroying ones first, at most 50.
	Changes []PlannedChange

	// omittedChanges is the number of changes that the list leaves out.
	OmittedChanges int32

	// diff shows the changes as text, resource by resource, as far as it fits into 8 KiB. Contents that may be
	// secret (config patches, manifests, kernel arguments) are left out: only the place that changes is named.
	Diff string

	// approved are the destroying changes that were approved and are not yet done.
	Approved []ApprovedChange
}

// ChangeAction is what a change does to an Omni resource.
type ChangeAction string

const (
	// ActionCreate creates a resource.
	ActionCreate ChangeAction = "Create"
	// ActionUpdate updates a resource.
	ActionUpdate ChangeAction = "Update"
	// ActionDestroy destroys a resource.
	ActionDestroy ChangeAction = "Destroy"
)

// PlannedChange is one change of a plan.
type PlannedChange struct {
	// action is Create, Update or Destroy.
	Action ChangeAction

	// type of the Omni resource.
	Type string

	// id of the Omni resource.
	ID string

	// destructive is true for a change that can wipe a machine or remove objects from the cluster: the destruction of
	// a cluster, machine set, machine set node or manifest group of mode full, and an update that takes machines
	// away from a set.
	Destructive bool

	// needsApproval is true for a change that waits until spec.approvedPlan equals the plan's hash.
	NeedsApproval bool
}

// ApprovedChange is one destroying change that was approved.
type ApprovedChange struct {
	// type of the Omni resource.
	Type string

	// id of the Omni resource.
	ID string

	// created is when Omni created the resource.
	Created *metav1.Time

	// oldSize is the machine count before a shrinking update, or "unlimited".
	OldSize string

	// newSize is the machine count after a shrinking update.
	NewSize string

	// members identifies the machines that a machine set held when its destruction was approved, but for those that
	// Omni took from a class.
	Members string
}

// RefusedChange is one change that Omni refused.
type RefusedChange struct {
	// action is Create, Update or Destroy.
	Action ChangeAction

	// type of the Omni resource.
	Type string

	// id of the Omni resource.
	ID string

	// message is what Omni said.
	Message string

	// documents are the objects whose part was refused: the OmniControlPlane or OmniWorkers of the machine set, and the
	// OmniMachine of the machine. It is empty for a part of the OmniCluster itself.
	Documents []RefusedDocument
}

// RefusedDocument is an object whose part Omni refused.
type RefusedDocument struct {
	// kind of the object.
	Kind string

	// name of the object.
	Name string

	// uid of the object.
	UID string

	// generation of the object that was refused.
	Generation int64
}

// OmniClusterRemoteStatus is what Omni says of the cluster.
type OmniClusterRemoteStatus struct {
	// phase is Omni's phase of the cluster, such as ScalingUp or Running.
	Phase string

	// kubernetesVersion is the Kubernetes version that Omni is to run. During an upgrade machines may still run
	// the one before.
	KubernetesVersion string

	// talosVersion is the Talos version that Omni is to run. During an upgrade machines may still run the one before.
	TalosVersion string

	// kubernetesAPIReady says whether the cluster's Kubernetes API answers.
	KubernetesAPIReady bool

	// controlPlaneReady says whether the control plane is ready.
	ControlPlaneReady bool

	// machines counts the machines of the cluster.
	Machines MachineCounts

	// upgrades are the Kubernetes and Talos upgrades, the last one included.
	Upgrades UpgradeStatuses

	// machineSets are the control plane and the worker sets.
	MachineSets []MachineSetStatus

	// machineStates are the machines that an OmniMachine describes.
	MachineStates []MachineState
}

// MachineCounts counts machines.
type MachineCounts struct {
	// total is the number of machines that belong.
	Total int32
	// connected is the number of machines connected to Omni.
	Connected int32
	// healthy is the number of machines that are healthy.
	Healthy int32
	// requested is the number of machines asked for.
	Requested int32
}

// UpgradeStatuses are the upgrades of a cluster.
type UpgradeStatuses struct {
	// kubernetes is the Kubernetes upgrade.
	Kubernetes *UpgradeStatus
	// talos is the Talos upgrade.
	Talos *UpgradeStatus
}

// UpgradeStatus is one upgrade.
type UpgradeStatus struct {
	// phase is Omni's phase of the upgrade.
	Phase string
	// step is what the upgrade does now.
	Step string
	// error is why the upgrade failed.
	Error string
}

// MachineSetStatus is one machine set.
type MachineSetStatus struct {
	// name of the set: control-planes, or the worker set's name.
	Name string
	// phase is Omni's phase of the set.
	Phase string
	// ready says whether every machine of the set is ready.
	Ready bool
	// machines counts the machines of the set.
	Machines MachineCounts
	// lockedUpdates is the number of machines whose update waits for a lock to be removed.
	LockedUpdates int32
}

// MachineState is one machine.
type MachineState struct {
	// id is the machine's UUID.
	ID string
	// stage is Omni's stage of the machine, such as Installing or Running.
	Stage string
	// connected says whether the machine is connected to Omni.
	Connected bool
	// ready says whether the machine is ready.
	Ready bool
}
