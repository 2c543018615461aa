package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// OmniSecretSync copies a Secret of this namespace into a workload cluster.
type OmniSecretSync struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniSecretSyncSpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniSecretSyncStatus `json:"status,omitempty"`
}

// OmniSecretSyncSpec says which Secret to copy where.
type OmniSecretSyncSpec struct {
	// clusterRef names the OmniCluster. It cannot be changed.
	// +required
	ClusterRef LocalObjectReference `json:"clusterRef"`

	// kubeconfigSecretRef names the Secret with the kubeconfig of the workload cluster. The key defaults to
	// kubeconfig. It cannot be changed.
	// +required
	KubeconfigSecretRef SecretKeyReference `json:"kubeconfigSecretRef"`

	// sourceSecretRef names the Secret to copy.
	// +required
	SourceSecretRef LocalObjectReference `json:"sourceSecretRef"`

	// targetSecretRef names the Secret to write in the workload cluster.
	// +required
	TargetSecretRef NamespacedSecretReference `json:"targetSecretRef"`

	// type of the written Secret. Unset means the source's type.
	// +optional
	Type string `json:"type,omitempty"`

	// keys selects and renames keys. Unset means all keys as they are.
	// +optional
	// +listType=map
	// +listMapKey=to
	Keys []SecretKeyMapping `json:"keys,omitzero"`

	// labels of the written Secret. Those of omni.texashpc.com cannot be set.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// annotations of the written Secret. Those of omni.texashpc.com cannot be set.
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`

	// createNamespace makes the target namespace if it is missing. It is never deleted.
	// +optional
	CreateNamespace bool `json:"createNamespace"`

	// adopt allows overwriting a Secret that this object did not write.
	// +optional
	Adopt bool `json:"adopt"`

	// deletionPolicy says whether the written Secret goes with this object, and with its place in targetSecretRef: Delete
	// (the default) or Orphan.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// NamespacedSecretReference names a Secret in a workload cluster.
type NamespacedSecretReference struct {
	// name of the Secret.
	// +required
	Name string `json:"name"`

	// namespace of the Secret.
	// +required
	Namespace string `json:"namespace"`
}

// SecretKeyMapping renames one key.
type SecretKeyMapping struct {
	// from is the key in the source.
	// +required
	From string `json:"from"`

	// to is the key in the target.
	// +required
	To string `json:"to"`
}

// OmniSecretSyncStatus is what the controller wrote.
type OmniSecretSyncStatus struct {
	ReconcileStatus `json:",inline"`

	// target is what was written.
	// +optional
	Target *SyncedSecret `json:"target,omitempty"`

	// pendingTargets are the Secrets besides target that may exist because of this object: the one that is about to
	// be written after a change of spec.targetSecretRef, and earlier ones that are not removed yet. They are removed,
	// except for the one that becomes target. One without a hash may never have been written.
	// +optional
	// +listType=atomic
	PendingTargets []SyncedSecret `json:"pendingTargets,omitempty"`

	// clusterID is the identity of the workload cluster that the kubeconfig led to: its UUID in Omni, or the UID
	// of its namespace kube-system. Another one stops the object (WrongCluster) until the annotation
	// omni.texashpc.com/accept-cluster names it.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// otherHub is status.otherHub of the OmniCluster, or its status.hubID while that names another hub; or what it was
	// last if there is no OmniCluster any more: the workload cluster belongs to that hub, or may. Nothing is done there,
	// also when this object is deleted.
	// +optional
	OtherHub string `json:"otherHub,omitempty"`

	// lastSyncTime is when the target was last written.
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`
}

// SyncedSecret is a Secret that was written to a workload cluster.
type SyncedSecret struct {
	// name of the Secret.
	Name string `json:"name"`

	// namespace of the Secret.
	Namespace string `json:"namespace"`

	// type of the Secret.
	// +optional
	Type string `json:"type,omitempty"`

	// hash is the sha256 of this object's UID, the type and the data that was written.
	// +optional
	Hash string `json:"hash,omitempty"`

	// generation is the metadata.generation of this object whose labels and annotations it was last seen to have.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniSecretSyncList is a list of OmniSecretSyncs.
type OmniSecretSyncList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniSecretSyncs.
	Items []OmniSecretSync `json:"items"`
}
