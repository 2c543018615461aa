package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// OmniCluster owns the life of one Talos cluster in Omni: the cluster-level settings are here, its machines
// are in one OmniControlPlane and any number of OmniWorkers and OmniMachine objects that name it. Deleting
// it destroys the cluster in Omni, unless deletePolicy.orphan is set or changePolicy is Observe.
type OmniCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniClusterSpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniClusterStatus `json:"status,omitempty"`
}

// OmniClusterSpec is the cluster document of an Omni cluster template, and how to treat it.
type OmniClusterSpec struct {
	// connectionRef names the OmniConnection. It cannot be changed.
	// +required
	ConnectionRef LocalObjectReference `json:"connectionRef"`

	// clusterName is the cluster's name in Omni: letters, digits, - and _, at most 63. Defaults to
	// metadata.name. It cannot be changed.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// labels are copied to the cluster in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// annotations are copied to the cluster in Omni. The prefixes omni.sidero.dev/ and omni.texashpc.com/ are refused.
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`

	// kubernetes holds the Kubernetes version and what Omni applies to the running cluster.
	// +required
	Kubernetes OmniClusterKubernetes `json:"kubernetes"`

	// talos holds the Talos version.
	// +required
	Talos OmniClusterTalos `json:"talos"`

	// features are the optional features of the cluster.
	// +optional
	Features OmniClusterFeatures `json:"features"`

	// patches are Talos machine configuration patches for every machine of the cluster, applied in order.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitzero"`

	// systemExtensions are the Talos system extensions of every machine. Unset says nothing: a machine for which no
	// narrower level has a list gets those of the image that it first booted. An empty list removes them all.
	// +optional
	// +listType=atomic
	SystemExtensions []string `json:"systemExtensions,omitzero"`

	// kernelArgs are extra kernel arguments of every machine. Unset leaves each machine as it is, also when a list is
	// taken away; an empty list removes them all. They cannot be combined with sets that use a machine class.
	// +optional
	// +listType=atomic
	KernelArgs []string `json:"kernelArgs,omitzero"`

	// deletePolicy says what deleting this object does in Omni.
	// +optional
	DeletePolicy OmniClusterDeletePolicy `json:"deletePolicy"`

	// adopt allows this object to take over a cluster of the same name that it did not create. It counts only
	// while status.omniClusterID is empty. It takes no cluster of another OmniCluster that exists: release it there first
	// (deletePolicy.orphan, then delete it). One that another hub made it takes only if the OmniConnection names that
	// hub (annotation omni.texashpc.com/previous-hub). Everything that would be destroyed then waits for approvedPlan
	// until the first plan without changes (status.adopting).
	// +optional
	Adopt bool `json:"adopt"`

	// changePolicy is Apply (changes are applied; those that destroy wait for a settle time),
	// ConfirmDestructive (those that destroy wait for approvedPlan) or Observe (nothing is ever written to Omni).
	// ConfirmDestructive does not hold up the deletion of this object, which destroys the cluster at once:
	// deletePolicy.requireConfirmation is what asks first. A deletion with Observe leaves the cluster and its mark.
	// +optional
	ChangePolicy ChangePolicy `json:"changePolicy,omitempty"`

	// approvedPlan approves the destroying changes of the plan with this hash (status.plan.hash). Empty it to take
	// back what has not been done yet.
	// +optional
	ApprovedPlan string `json:"approvedPlan,omitempty"`

	// syncInterval is how often the plan is computed again when nothing has changed; a safety net, as changes
	// trigger at once. At least 1s, default 5m; less than 30s counts as 30s.
	// +optional
	SyncInterval Duration `json:"syncInterval,omitempty"`

	// suspend computes and shows the plan, and changes nothing in Omni. The cluster's OmniHelmReleases begin no install, upgrade or
	// rollback; its copied Secrets and exported kubeconfigs go on. Deletion still follows deletePolicy.
	// +optional
	Suspend bool `json:"suspend"`
}

// ChangePolicy says which changes are applied without asking.
// +enum
type ChangePolicy string

const (
	// ChangePolicyApply applies every change; destroying ones after a settle time.
	ChangePolicyApply ChangePolicy = "Apply"
	// ChangePolicyConfirmDestructive lets destroying changes wait for spec.approvedPlan.
	ChangePolicyConfirmDestructive ChangePolicy = "ConfirmDestructive"
	// ChangePolicyObserve never writes to Omni.
	ChangePolicyObserve ChangePolicy = "Observe"
)

// OmniClusterKubernetes holds the Kubernetes settings of a cluster.
type OmniClusterKubernetes struct {
	// version is the Kubernetes version with a leading v, such as v1.35.1.
	// +required
	Version string `json:"version"`

	// manifests are Kubernetes objects that Omni applies to the running cluster, which is Ready only when all are applied.
	// +optional
	// +listType=map
	// +listMapKey=name
	Manifests []Manifest `json:"manifests,omitzero"`

	// healthchecks are Jobs that Omni runs to decide whether an upgrade may go on.
	// +optional
	// +listType=atomic
	Healthchecks []Healthcheck `json:"healthchecks,omitzero"`
}

// OmniClusterTalos holds the Talos settings of a cluster.
type OmniClusterTalos struct {
	// version is the Talos version with a leading v, such as v1.13.3.
	// +required
	Version string `json:"version"`
}

// ManifestMode says how Omni treats a manifest after its first application.
// +enum
type ManifestMode string

const (
	// ManifestFull keeps the objects in the cluster equal to the manifest.
	ManifestFull ManifestMode = "full"
	// ManifestOneTime applies the manifest once.
	ManifestOneTime ManifestMode = "one-time"
)

// Manifest is a group of Kubernetes objects that Omni applies. Exactly one of inline and valueFrom must be set.
type Manifest struct {
	// name of the group, unique in the cluster.
	// +required
	Name string `json:"name"`

	// mode is full (keep the objects as written, the default) or one-time (apply once). Omni removes an object from
	// the cluster when it is taken out of a full group, and all of them when the group goes or leaves the mode full.
	// +optional
	Mode ManifestMode `json:"mode,omitempty"`

	// labels are copied to the group in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// annotations are copied to the group in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`

	// inline holds the Kubernetes objects.
	// +optional
	// +listType=atomic
	Inline []FreeForm `json:"inline,omitzero"`

	// valueFrom reads the objects, as YAML documents, from a ConfigMap or Secret.
	// +optional
	ValueFrom *ValueSource `json:"valueFrom,omitempty"`
}

// Healthcheck is a Kubernetes Job that Omni runs while it gates an upgrade.
type Healthcheck struct {
	// name of the healthcheck, unique in the cluster. One of name and idOverride is required.
	// +optional
	Name string `json:"name,omitempty"`

	// idOverride is the ID of the healthcheck in Omni, instead of the one derived from the name.
	// +optional
	IDOverride string `json:"idOverride,omitempty"`

	// labels are copied to the healthcheck in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// annotations are copied to the healthcheck in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`

	// interval is how often Omni checks again while it holds an upgrade. At least 5s; unset means Omni's default of 30s.
	// +optional
	Interval Duration `json:"interval,omitempty"`

	// job is the Kubernetes Job to run.
	// +required
	Job *FreeForm `json:"job"`
}

// OmniClusterFeatures are the optional features of a cluster.
type OmniClusterFeatures struct {
	// enableWorkloadProxy exposes annotated Services of the cluster through Omni.
	// +optional
	EnableWorkloadProxy bool `json:"enableWorkloadProxy"`

	// useEmbeddedDiscoveryService uses Omni's own discovery service instead of the public one.
	// +optional
	UseEmbeddedDiscoveryService bool `json:"useEmbeddedDiscoveryService"`

	// diskEncryption encrypts the machines' disks with keys that Omni holds. It cannot be changed.
	// +optional
	DiskEncryption bool `json:"diskEncryption"`

	// enableNodeAuditSkip lets the annotation omni.sidero.dev/node-audit-skip exempt a Kubernetes node from Omni's check that each
	// node is one of its machines. Unset leaves what Omni has.
	// +optional
	EnableNodeAuditSkip *bool `json:"enableNodeAuditSkip,omitempty"`

	// disablePublicDiscoveryService turns the public discovery service off. It needs useEmbeddedDiscoveryService, Omni 1.10, and a
	// cluster that was created with Talos 1.14 or newer. Unset leaves what Omni has.
	// +optional
	DisablePublicDiscoveryService *bool `json:"disablePublicDiscoveryService,omitempty"`

	// backupConfiguration turns on etcd backups. Unset leaves what Omni has, but for a configuration that this field set: removing
	// that turns backups off.
	// +optional
	BackupConfiguration *BackupConfiguration `json:"backupConfiguration,omitempty"`
}

// BackupConfiguration turns on etcd backups.
type BackupConfiguration struct {
	// interval between two backups, such as 1h. 0s turns them off.
	// +required
	Interval Duration `json:"interval"`
}

// OmniClusterDeletePolicy says what deleting an OmniCluster does in Omni.
type OmniClusterDeletePolicy struct {
	// orphan keeps the cluster in Omni. It cannot be combined with destroyMachines.
	// +optional
	Orphan bool `json:"orphan"`

	// destroyMachines also removes machines that Omni counts as disconnected, some minutes after they fell silent, and which would
	// otherwise block the deletion. Omni never does so with a machine that was shut down: take that out of Omni
	// (omnictl delete link UUID). It cannot be combined with orphan.
	// +optional
	DestroyMachines bool `json:"destroyMachines"`

	// requireConfirmation refuses to delete this object until its annotation
	// omni.texashpc.com/confirm-deletion equals its name. Unset means the API server's default. It also holds
	// up the deletion of the namespace and garbage collection.
	// +optional
	RequireConfirmation *bool `json:"requireConfirmation,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniClusterList is a list of OmniClusters.
type OmniClusterList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniClusters.
	Items []OmniCluster `json:"items"`
}
