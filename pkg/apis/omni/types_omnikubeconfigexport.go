package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniKubeconfigExport writes a kubeconfig of a workload cluster, for a user and groups you choose, to a Secret
// of this namespace, and rotates it before it expires.
type OmniKubeconfigExport struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniKubeconfigExportSpec

	// status is what the controller found and did. It is read-only.
	Status OmniKubeconfigExportStatus
}

// OmniKubeconfigExportSpec says which kubeconfig to write where.
type OmniKubeconfigExportSpec struct {
	// clusterRef names the OmniCluster.
	ClusterRef LocalObjectReference

	// targetSecretRef names the Secret to write, in this namespace. The key defaults to kubeconfig.
	TargetSecretRef SecretKeyReference

	// serviceAccount is who the kubeconfig speaks for.
	ServiceAccount KubeconfigServiceAccount

	// ttl is how long a kubeconfig is valid, 10m to 8760h. Omni cannot revoke one token: prefer a short ttl.
	TTL Duration

	// renewBefore is how long before expiry a new kubeconfig is written; more than 0 and less than ttl.
	// Unset means at expiry, which leaves its readers a moment without access.
	RenewBefore Duration

	// deletionPolicy says whether the Secret goes with this object: Delete (the default) or Orphan.
	DeletionPolicy DeletionPolicy

	// contextNamespace is the default namespace in the kubeconfig's context.
	ContextNamespace string

	// format is Kubeconfig (the default) or ArgoCD, an Argo CD cluster Secret.
	Format KubeconfigFormat

	// secretTemplate adds labels and annotations to the Secret.
	SecretTemplate SecretTemplate
}

// KubeconfigServiceAccount is who an exported kubeconfig speaks for.
type KubeconfigServiceAccount struct {
	// user name in the workload cluster.
	User string

	// groups in the workload cluster; at least one. Bind them there with RBAC.
	Groups []string

	// allowClusterAdmin allows the group system:masters.
	AllowClusterAdmin bool
}

// KubeconfigFormat is the shape of an exported Secret.
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
	Labels map[string]string

	// annotations of the Secret. Those of omni.texashpc.com cannot be set.
	Annotations map[string]string
}

// OmniKubeconfigExportStatus is what the controller wrote.
type OmniKubeconfigExportStatus struct {
	ReconcileStatus

	// clusterName is the cluster's name in Omni.
	ClusterName string

	// targetSecretRef is the Secret and key that were written.
	TargetSecretRef *SecretKeyReference

	// kubeconfigHash is the sha256 of the kubeconfig that was written.
	KubeconfigHash string

	// expirationTime is when the kubeconfig's token expires.
	ExpirationTime *metav1.Time

	// nextRotationTime is when a new kubeconfig is due.
	NextRotationTime *metav1.Time

	// lastRotationTime is when the kubeconfig was written.
	LastRotationTime *metav1.Time
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniKubeconfigExportList is a list of OmniKubeconfigExports.
type OmniKubeconfigExportList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniKubeconfigExports.
	Items []OmniKubeconfigExport
}
