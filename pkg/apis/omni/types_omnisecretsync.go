package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniSecretSync copies a Secret of this namespace into a workload cluster.
type OmniSecretSync struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniSecretSyncSpec

	// status is what the controller found and did. It is read-only.
	Status OmniSecretSyncStatus
}

// OmniSecretSyncSpec says which Secret to copy where.
type OmniSecretSyncSpec struct {
	// clusterRef names the OmniCluster. It cannot be changed.
	ClusterRef LocalObjectReference

	// kubeconfigSecretRef names the Secret with the kubeconfig of the workload cluster. The key defaults to
	// kubeconfig. It cannot be changed.
	KubeconfigSecretRef SecretKeyReference

	// sourceSecretRef names the Secret to copy.
	SourceSecretRef LocalObjectReference

	// targetSecretRef names the Secret to write in the workload cluster.
	TargetSecretRef NamespacedSecretReference

	// type of the written Secret. Unset means the source's type.
	Type string

	// keys selects and renames keys. Unset means all keys as they are.
	Keys []SecretKeyMapping

	// labels of the written Secret. Those of omni.texashpc.com cannot be set.
	Labels map[string]string

	// annotations of the written Secret. Those of omni.texashpc.com cannot be set.
	Annotations map[string]string

	// createNamespace makes the target namespace if it is missing. It is never deleted.
	CreateNamespace bool

	// adopt allows overwriting a Secret that this object did not write.
	Adopt bool

	// deletionPolicy says whether the written Secret goes with this object: Delete (the default) or Orphan.
	DeletionPolicy DeletionPolicy
}

// NamespacedSecretReference names a Secret in a workload cluster.
type NamespacedSecretReference struct {
	// name of the Secret.
	Name string

	// namespace of the Secret.
	Namespace string
}

// SecretKeyMapping renames one key.
type SecretKeyMapping struct {
	// from is the key in the source.
	From string

	// to is the key in the target.
	To string
}

// OmniSecretSyncStatus is what the controller wrote.
type OmniSecretSyncStatus struct {
	ReconcileStatus

	// target is what was written.
	Target *SyncedSecret
	// PendingTargets are the Secrets besides Target that may exist because of this object.
	PendingTargets []NamespacedSecretReference

	// clusterID is the identity of the workload cluster that the kubeconfig led to: its UUID in Omni, or the UID
	// of its namespace kube-system. Another one stops the object (WrongCluster) until the annotation
	// omni.texashpc.com/accept-cluster names it.
	ClusterID string

	// lastSyncTime is when the target was last written.
	LastSyncTime *metav1.Time
}

// SyncedSecret is a Secret that was written to a workload cluster.
type SyncedSecret struct {
	// name of the Secret.
	Name string

	// namespace of the Secret.
	Namespace string

	// type of the Secret.
	Type string

	// hash is the sha256 of this object's UID, the type and the data that was written.
	Hash string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniSecretSyncList is a list of OmniSecretSyncs.
type OmniSecretSyncList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniSecretSyncs.
	Items []OmniSecretSync
}
