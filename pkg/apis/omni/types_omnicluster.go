package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniCluster owns the life of one Talos cluster in Omni: the cluster-level settings are here, its machines
// are in one OmniControlPlane and any number of OmniWorkers and OmniMachine objects that name it. Deleting
// it destroys the cluster in Omni, unless deletePolicy.orphan is set or changePolicy is Observe.
type OmniCluster struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniClusterSpec

	// status is what the controller found and did. It is read-only.
	Status OmniClusterStatus
}

// OmniClusterSpec is the cluster document of an Omni cluster template, and how to treat it.
type OmniClusterSpec struct {
	// connectionRef names the OmniConnection. It cannot be changed.
	ConnectionRef LocalObjectReference

	// clusterName is the cluster's name in Omni: letters, digits, - and _, at most 63. Defaults to
	// metadata.name. It cannot be changed.
	ClusterName string

	// labels are copied to the cluster in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	Labels map[string]string

	// annotations are copied to the cluster in Omni. The prefixes omni.sidero.dev/ and omni.texashpc.com/ are refused.
	Annotations map[string]string

	// kubernetes holds the Kubernetes version and what Omni applies to the running cluster.
	Kubernetes OmniClusterKubernetes

	// talos holds the Talos version.
	Talos OmniClusterTalos

	// features are the optional features of the cluster.
	Features OmniClusterFeatures

	// patches are Talos machine configuration patches for every machine of the cluster, applied in order.
	Patches []Patch

	// systemExtensions are the Talos system extensions of every machine. Unset leaves each machine as it is;
	// an empty list removes them all.
	SystemExtensions []string

	// kernelArgs are extra kernel arguments of every machine. Unset leaves each machine as it is; an empty
	// list removes them all. They cannot be combined with sets that use a machine class.
	KernelArgs []string

	// deletePolicy says what deleting this object does in Omni.
	DeletePolicy OmniClusterDeletePolicy

	// adopt allows this object to take over a cluster of the same name that it did not create. It counts only
	// while status.omniClusterID is empty. Everything that would be destroyed then waits for approvedPlan until the
	// first plan without changes (status.adopting).
	Adopt bool

	// changePolicy is Apply (changes are applied; those that destroy wait for a settle time),
	// ConfirmDestructive (those that destroy wait for approvedPlan) or Observe (nothing is ever written to Omni).
	// ConfirmDestructive does not hold up the deletion of this object, which destroys the cluster at once:
	// deletePolicy.requireConfirmation is what asks first. A deletion with Observe leaves the cluster and its mark.
	ChangePolicy ChangePolicy

	// approvedPlan approves the destroying changes of the plan with this hash (status.plan.hash). Empty it to take
	// back what has not been done yet.
	ApprovedPlan string

	// syncInterval is how often the plan is computed again when nothing has changed; a safety net, as changes
	// trigger at once. At least 30s, default 5m.
	SyncInterval Duration

	// suspend computes and shows the plan, and changes nothing in Omni. Deletion still follows deletePolicy.
	Suspend bool
}

// ChangePolicy says which changes are applied without asking.
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
	Version string

	// manifests are Kubernetes objects that Omni applies to the running cluster.
	Manifests []Manifest

	// healthchecks are Jobs that Omni runs to decide whether an upgrade may go on.
	Healthchecks []Healthcheck
}

// OmniClusterTalos holds the Talos settings of a cluster.
type OmniClusterTalos struct {
	// version is the Talos version with a leading v, such as v1.13.3.
	Version string
}

// ManifestMode says how Omni treats a manifest after its first application.
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
	Name string

	// mode is full (keep the objects as written, the default) or one-time (apply once). Omni removes an object from
	// the cluster when it is taken out of a full group, and all of them when the group goes or leaves the mode full.
	Mode ManifestMode

	// labels are copied to the group in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	Labels map[string]string

	// annotations are copied to the group in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	Annotations map[string]string

	// inline holds the Kubernetes objects.
	Inline []FreeForm

	// valueFrom reads the objects, as YAML documents, from a ConfigMap or Secret.
	ValueFrom *ValueSource
}

// Healthcheck is a Kubernetes Job that Omni runs while it gates an upgrade.
type Healthcheck struct {
	// name of the healthcheck, unique in the cluster. One of name and idOverride is required.
	Name string

	// idOverride is the ID of the healthcheck in Omni, instead of the one derived from the name.
	IDOverride string

	// labels are copied to the healthcheck in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	Labels map[string]string

	// annotations are copied to the healthcheck in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	Annotations map[string]string

	// interval is how often Omni checks again while it holds an upgrade. At least 5s; unset means Omni's default of 30s.
	Interval Duration

	// job is the Kubernetes Job to run.
	Job *FreeForm
}

// OmniClusterFeatures are the optional features of a cluster.
type OmniClusterFeatures struct {
	// enableWorkloadProxy exposes annotated Services of the cluster through Omni.
	EnableWorkloadProxy bool

	// useEmbeddedDiscoveryService uses Omni's own discovery service instead of the public one.
	UseEmbeddedDiscoveryService bool

	// diskEncryption encrypts the machines' disks with keys that Omni holds. It cannot be changed.
	DiskEncryption bool

	// backupConfiguration turns on etcd backups.
	BackupConfiguration *BackupConfiguration
}

// BackupConfiguration turns on etcd backups.
type BackupConfiguration struct {
	// interval between two backups, such as 1h. 0s turns them off.
	Interval Duration
}

// OmniClusterDeletePolicy says what deleting an OmniCluster does in Omni.
type OmniClusterDeletePolicy struct {
	// orphan keeps the cluster in Omni. It cannot be combined with destroyMachines.
	Orphan bool

	// destroyMachines also removes machines that are disconnected, which would otherwise block the deletion.
	// It cannot be combined with orphan.
	DestroyMachines bool

	// requireConfirmation refuses to delete this object until its annotation
	// omni.texashpc.com/confirm-deletion equals its name. Unset means the API server's default. It also holds
	// up the deletion of the namespace and garbage collection.
	RequireConfirmation *bool
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniClusterList is a list of OmniClusters.
type OmniClusterList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniClusters.
	Items []OmniCluster
}
