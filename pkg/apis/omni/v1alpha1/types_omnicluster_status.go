package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OmniClusterStatus is what the controller found and did.
type OmniClusterStatus struct {
	ReconcileStatus `json:",inline"`

	// clusterName is the cluster's name in Omni.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// connectionRef is the connection that was last used.
	// +optional
	ConnectionRef *LocalObjectReference `json:"connectionRef,omitempty"`

	// endpoint is the URL of the Omni that holds the cluster.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// omniClusterID is the cluster's UUID in Omni. A cluster that is deleted and made again has another one.
	// +optional
	OmniClusterID string `json:"omniClusterID,omitempty"`

	// hubID is the ID of the hub that last saw in Omni whose the cluster is. On any other hub, as after the restore of a
	// snapshot there, nothing is done in the workload cluster before that hub has seen it, too. Unset if none has, or only
	// a controller of an earlier version.
	// +optional
	HubID string `json:"hubID,omitempty"`

	// otherHub is the ID of another hub whose mark the cluster carries, as it was last seen in Omni, if this object had the
	// cluster or is to adopt it. Nothing is changed there then, and nothing is done in the workload cluster for objects of
	// this hub, also when they are deleted. The annotation omni.texashpc.com/previous-hub of the OmniConnection takes over
	// what that hub had.
	// +optional
	OtherHub string `json:"otherHub,omitempty"`

	// controlPlaneRef is the OmniControlPlane that was last applied.
	// +optional
	ControlPlaneRef *AppliedReference `json:"controlPlaneRef,omitempty"`

	// workersRefs are the OmniWorkers that were last applied.
	// +optional
	// +listType=map
	// +listMapKey=name
	WorkersRefs []AppliedReference `json:"workersRefs,omitempty"`

	// machineRefs are the OmniMachines that were last applied.
	// +optional
	// +listType=map
	// +listMapKey=name
	MachineRefs []AppliedReference `json:"machineRefs,omitempty"`

	// templateHash is the sha256 of the template that was last applied.
	// +optional
	TemplateHash string `json:"templateHash,omitempty"`

	// appliedMachineSets are the machine sets, with their machines, that Omni has from this object. A destroying
	// change of anything else (made by hand in Omni, or by documents that this status does not know, as after the
	// restore of a backup) waits for spec.approvedPlan under every change policy.
	// +optional
	// +listType=map
	// +listMapKey=id
	AppliedMachineSets []AppliedMachineSet `json:"appliedMachineSets,omitempty"`

	// appliedManifests are the IDs of the manifest groups of mode full that Omni has from this object. When such a
	// group goes, Omni removes its objects from the cluster: one that this list does not name goes only with
	// spec.approvedPlan.
	// +optional
	// +listType=set
	AppliedManifests []string `json:"appliedManifests,omitempty"`

	// appliedTimes are when Omni made what appliedMachineSets and appliedManifests name, by its clock and by ID: of each machine
	// set, listed machine and manifest group. What was made at another time under the same ID is not from this object, as after
	// the restore of a backup in which it was to go, while it was made again since.
	// +optional
	// +mapType=atomic
	AppliedTimes map[string]metav1.Time `json:"appliedTimes,omitempty"`

	// controlPlaneSet is the control plane's machine set that Omni had when this object saw one last in the cluster of
	// omniClusterID. If Omni has it no more, etcd is gone with it: it is only made again from another backup
	// (spec.bootstrapSpec of the OmniControlPlane), or if the annotation omni.texashpc.com/recreate allows it.
	// +optional
	ControlPlaneSet *ControlPlaneSet `json:"controlPlaneSet,omitempty"`

	// adopting is true from the moment an existing cluster is taken over (spec.adopt) until the first plan without
	// changes. Every change that destroys anything waits for spec.approvedPlan meanwhile.
	// +optional
	Adopting bool `json:"adopting,omitempty"`

	// starting is true from the moment the cluster is made or taken over until Omni has seen Kubernetes work in it (a
	// KubernetesUpgradeStatus that was Done). Until then the word of Omni's load balancer, which says healthy before its
	// first check, does not make it Available.
	// +optional
	Starting bool `json:"starting,omitempty"`

	// lastSyncTime is when a change was last applied to Omni.
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`

	// plan is what has to change in Omni.
	// +optional
	Plan *OmniClusterPlan `json:"plan,omitempty"`

	// usedApproval is the value of spec.approvedPlan whose changes were begun last. It does not approve the same changes
	// once more, as after a restore of Omni from a backup, which brings back what was destroyed: they get another hash.
	// +optional
	UsedApproval string `json:"usedApproval,omitempty"`

	// refusals are the changes that Omni refused when they were last tried, at most 10. What does not depend on them
	// is applied; they are tried again when something changes, and at the sync interval.
	// +optional
	// +listType=atomic
	Refusals []RefusedChange `json:"refusals,omitempty"`

	// lastDestroyed is what of the cluster was destroyed last, because the documents said so. The conditions repeat it for a day:
	// the numbers of a cluster that is Ready do not tell that there were more machines.
	// +optional
	LastDestroyed *LastDestroyed `json:"lastDestroyed,omitempty"`

	// secondWriter says what else writes the cluster in Omni, if something does. Nothing is written or destroyed there until an
	// edit that removes nothing, or the annotation omni.texashpc.com/reconcile-requested-at, lets this object go on.
	// +optional
	SecondWriter string `json:"secondWriter,omitempty"`

	// rollout is what an OmniRolloutPolicy has to do with the cluster's changes. Unset if none ever selected it.
	// +optional
	Rollout *OmniClusterRollout `json:"rollout,omitempty"`

	// omni is what Omni says of the cluster.
	// +optional
	Omni *OmniClusterRemoteStatus `json:"omni,omitempty"`
}

// AppliedReference names an object and the state of it that was applied.
type AppliedReference struct {
	// name of the object.
	Name string `json:"name"`

	// uid of the object.
	UID string `json:"uid"`

	// generation of the object that was applied.
	Generation int64 `json:"generation"`
}

// AppliedMachineSet is a machine set as it was last applied.
type AppliedMachineSet struct {
	// id of the machine set in Omni.
	ID string `json:"id"`

	// size is the machine class and count of a set that takes its machines from a class, such as "large/3" or
	// "large/unlimited". Empty for a set with listed machines.
	// +optional
	Size string `json:"size,omitempty"`

	// machines are the listed machines, by UUID.
	// +optional
	// +listType=set
	Machines []string `json:"machines,omitempty"`

	// omniWorkers is the name of the OmniWorkers that asked for the set. Empty for the control plane.
	// +optional
	OmniWorkers string `json:"omniWorkers,omitempty"`

	// movedTo is the OmniCluster that this OmniWorkers named when it left this one: it was deleted and made again. The set
	// stays until its removal is approved, or until an OmniWorkers of this cluster asks for it again.
	// +optional
	MovedTo string `json:"movedTo,omitempty"`
}

// ControlPlaneSet is the machine set of a control plane in Omni.
type ControlPlaneSet struct {
	// created is when Omni made the set, by its clock. A set that is deleted and made again has another time.
	Created metav1.Time `json:"created"`

	// backup is the backup from which Omni made its etcd: the UUID of the cluster that made the backup, a slash and the
	// name of the snapshot. Empty if etcd began empty.
	// +optional
	Backup string `json:"backup,omitempty"`
}

// OmniClusterPlan is what has to change in Omni.
type OmniClusterPlan struct {
	// hash identifies the destroying changes that need approval; where none does, all destroying changes. It is
	// empty if there are none. Write it to spec.approvedPlan to approve them.
	// +optional
	Hash string `json:"hash,omitempty"`

	// creates is the number of Omni resources to create.
	Creates int32 `json:"creates"`

	// updates is the number of Omni resources to update.
	Updates int32 `json:"updates"`

	// destroys is the number of Omni resources to destroy.
	Destroys int32 `json:"destroys"`

	// destructive is the number of changes, of all three kinds, that take machines away, or objects out of the
	// running cluster. While a cluster is being adopted every destroy counts, and every update that takes objects from a
	// manifest group of mode full.
	// +optional
	Destructive int32 `json:"destructive,omitempty"`

	// held is the number of changes that wait for their turn in an OmniRolloutPolicy.
	// +optional
	Held int32 `json:"held,omitempty"`

	// changes are the changes one by one, destroying ones first, at most 50.
	// +optional
	// +listType=atomic
	Changes []PlannedChange `json:"changes,omitempty"`

	// omittedChanges is the number of changes that the list leaves out.
	// +optional
	OmittedChanges int32 `json:"omittedChanges,omitempty"`

	// diff shows the changes as text, resource by resource, as far as it fits into 8 KiB. Contents that may be
	// secret (config patches, manifests, kernel arguments) are left out: only the place that changes is named.
	// +optional
	Diff string `json:"diff,omitempty"`

	// approved are the destroying changes that were approved and are not yet done.
	// +optional
	// +listType=atomic
	Approved []ApprovedChange `json:"approved,omitempty"`
}

// ChangeAction is what a change does to an Omni resource.
// +enum
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
	Action ChangeAction `json:"action"`

	// type of the Omni resource.
	Type string `json:"type"`

	// id of the Omni resource.
	ID string `json:"id"`

	// destructive is true for a change that can wipe a machine or remove objects from the cluster: the destruction of
	// a cluster, machine set, machine set node or manifest group of mode full, an update that takes machines
	// away from a set, and one by which a manifest group leaves mode full. While a cluster is being adopted also every other
	// destruction, and an update that takes objects from a group of mode full.
	// +optional
	Destructive bool `json:"destructive,omitempty"`

	// needsApproval is true for a change that waits until spec.approvedPlan equals the plan's hash.
	// +optional
	NeedsApproval bool `json:"needsApproval,omitempty"`

	// kind is what the change is about, for an OmniRolloutPolicy. Empty for a change that never waits for one.
	// +optional
	Kind ChangeKind `json:"kind,omitempty"`

	// held is true for a change that waits for its turn in an OmniRolloutPolicy.
	// +optional
	Held bool `json:"held,omitempty"`
}

// ApprovedChange is one destroying change that was approved.
type ApprovedChange struct {
	// type of the Omni resource.
	Type string `json:"type"`

	// id of the Omni resource.
	ID string `json:"id"`

	// created is when Omni created the resource.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`

	// oldSize is the machine count before a shrinking update, or "unlimited".
	// +optional
	OldSize string `json:"oldSize,omitempty"`

	// newSize is the machine count after a shrinking update.
	// +optional
	NewSize string `json:"newSize,omitempty"`

	// members identifies the machines that a machine set held when its destruction was approved, but for those that
	// Omni took from a class. In an adoption it also identifies where a patch goes that is taken from machines, and the
	// objects that a manifest group loses.
	// +optional
	Members string `json:"members,omitempty"`

	// version of the Omni resource that a shrinking update or the removal of a manifest group starts from: another
	// version was not approved.
	// +optional
	Version string `json:"version,omitempty"`
}

// RefusedChange is one change that Omni refused.
type RefusedChange struct {
	// action is Create, Update or Destroy.
	Action ChangeAction `json:"action"`

	// type of the Omni resource.
	Type string `json:"type"`

	// id of the Omni resource.
	ID string `json:"id"`

	// message is what Omni said.
	// +optional
	Message string `json:"message,omitempty"`

	// documents are the objects whose part was refused: the OmniControlPlane or OmniWorkers of the machine set, and the
	// OmniMachine of the machine. It is empty for a part of the OmniCluster itself.
	// +optional
	// +listType=atomic
	Documents []RefusedDocument `json:"documents,omitempty"`
}

// RefusedDocument is an object whose part Omni refused.
type RefusedDocument struct {
	// kind of the object.
	Kind string `json:"kind"`

	// name of the object.
	Name string `json:"name"`

	// uid of the object.
	UID string `json:"uid"`

	// generation of the object that was refused.
	Generation int64 `json:"generation"`
}

// LastDestroyed names machine sets and machines that were destroyed within a few minutes of each other.
type LastDestroyed struct {
	// since is when Omni was told to destroy the first of them.
	Since metav1.Time `json:"since"`

	// names are the kinds and IDs of the first 100 in Omni, such as MachineSet "demo-workers".
	// +listType=atomic
	Names []string `json:"names"`
}
