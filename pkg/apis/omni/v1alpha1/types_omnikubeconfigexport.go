package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// OmniKubeconfigExport writes a kubeconfig of a workload cluster, for a user and groups you choose, to a Secret,
// and rotates it before it expires.
type OmniKubeconfigExport struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniKubeconfigExportSpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniKubeconfigExportStatus `json:"status,omitempty"`
}

// OmniKubeconfigExportSpec says which kubeconfig to write where.
type OmniKubeconfigExportSpec struct {
	// clusterRef names the OmniCluster. It cannot be changed once the Secret was written
	// (status.targetSecretRef).
	// +required
	ClusterRef LocalObjectReference `json:"clusterRef"`

	// targetSecretRef names the Secret to write. The key defaults to kubeconfig, the namespace to that of this object.
	// +required
	TargetSecretRef TargetSecretReference `json:"targetSecretRef"`

	// serviceAccount is who the kubeconfig speaks for.
	// +required
	ServiceAccount KubeconfigServiceAccount `json:"serviceAccount"`

	// ttl is how long a kubeconfig is valid, 5m to 8760h. Omni cannot revoke one token: prefer a short ttl.
	// +required
	TTL Duration `json:"ttl"`

	// renewBefore is how long before expiry a new kubeconfig is written; more than 0 and less than ttl.
	// Unset means at expiry or up to 5 % of ttl earlier, which may leave its readers a moment without access.
	// +optional
	RenewBefore Duration `json:"renewBefore,omitempty"`

	// deletionPolicy says whether the Secret goes with this object, and with its place in targetSecretRef: Delete (the
	// default) or Orphan.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// contextNamespace is the default namespace in the kubeconfig's context.
	// +optional
	ContextNamespace string `json:"contextNamespace,omitempty"`

	// format is Kubeconfig (the default) or ArgoCD, an Argo CD cluster Secret.
	// +optional
	Format KubeconfigFormat `json:"format,omitempty"`

	// adopt takes over a Secret of this name that another made: the operator with CRDs, an export that is gone, or a
	// person. It has to hold a kubeconfig and nothing else, and not to be protected. A kubeconfig that is what this export
	// asks for stays.
	// +optional
	Adopt bool `json:"adopt"`

	// secretTemplate adds labels and annotations to the Secret.
	// +optional
	SecretTemplate *SecretTemplate `json:"secretTemplate,omitempty"`
}

// TargetSecretReference names one key of a Secret to write.
type TargetSecretReference struct {
	// name of the Secret.
	// +required
	Name string `json:"name"`

	// namespace of the Secret, if it is another than that of this object. The controller has to be told of it
	// (--export-namespaces), and who writes this object has to have the right to create and update Secrets there.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// key inside the Secret's data.
	// +optional
	Key string `json:"key,omitempty"`
}

// KubeconfigServiceAccount is who an exported kubeconfig speaks for.
type KubeconfigServiceAccount struct {
	// user name in the workload cluster.
	// +required
	User string `json:"user"`

	// groups in the workload cluster; at least one. Bind them there with RBAC.
	// +required
	// +listType=set
	Groups []string `json:"groups"`

	// allowClusterAdmin allows the group system:masters.
	// +optional
	AllowClusterAdmin bool `json:"allowClusterAdmin"`
}

// KubeconfigFormat is the shape of an exported Secret.
// +enum
type KubeconfigFormat string

const (
	// FormatKubeconfig writes a kubeconfig file.
	FormatKubeconfig KubeconfigFormat = "Kubeconfig"
	// FormatArgoCD writes an Argo CD cluster Secret.
	FormatArgoCD KubeconfigFormat = "ArgoCD"
)

// SecretTemplate adds metadata to a Secret.
type SecretTemplate struct {
	// labels of the Secret. Those of omni.texashpc.com cannot be set.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// annotations of the Secret. Those of omni.texashpc.com cannot be set.
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`
}

// OmniKubeconfigExportStatus is what the controller wrote.
type OmniKubeconfigExportStatus struct {
	ReconcileStatus `json:",inline"`

	// clusterName is the cluster's name in Omni.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// targetSecretRef is the Secret and key that were written.
	// +optional
	TargetSecretRef *TargetSecretReference `json:"targetSecretRef,omitempty"`

	// kubeconfigHash is the sha256 of the kubeconfig that was written.
	// +optional
	KubeconfigHash string `json:"kubeconfigHash,omitempty"`

	// expirationTime is when the kubeconfig's token expires.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// nextRotationTime is when a new kubeconfig is due.
	// +optional
	NextRotationTime *metav1.Time `json:"nextRotationTime,omitempty"`

	// lastRotationTime is when the kubeconfig was written.
	// +optional
	LastRotationTime *metav1.Time `json:"lastRotationTime,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniKubeconfigExportList is a list of OmniKubeconfigExports.
type OmniKubeconfigExportList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniKubeconfigExports.
	Items []OmniKubeconfigExport `json:"items"`
}
