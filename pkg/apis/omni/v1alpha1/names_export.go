package v1alpha1

// What the controller writes on the Secrets of OmniKubeconfigExports.
const (
	// LabelExportUID is the UID of the OmniKubeconfigExport that wrote the Secret. Together with
	// AnnotationExportSecret it decides who owns it.
	LabelExportUID = GroupName + "/kubeconfig-export-uid"
	// LabelCluster is the name of the OmniCluster, to select exported Secrets by. It says nothing of who owns the
	// Secret. A name that is longer than a label may be, 63 bytes, is left out.
	LabelCluster = GroupName + "/cluster"
	// AnnotationExportName is the name of that OmniKubeconfigExport.
	AnnotationExportName = GroupName + "/kubeconfig-export"
	// AnnotationExportNamespace is its namespace, if that is not the Secret's.
	AnnotationExportNamespace = GroupName + "/kubeconfig-export-namespace"
	// AnnotationExportSecret is the namespace and name, with a slash between, that the Secret was written as. A
	// Secret with another name, or in another namespace, is a copy, and nobody's.
	AnnotationExportSecret = GroupName + "/kubeconfig-export-secret"
	// AnnotationExportCluster is the cluster's name in Omni.
	AnnotationExportCluster = GroupName + "/cluster-name"
	// AnnotationKubeconfigHash is the sha256 of the kubeconfig that was written, as in status.kubeconfigHash.
	AnnotationKubeconfigHash = GroupName + "/kubeconfig-hash"
	// AnnotationSpecHash is the sha256 of everything that the kubeconfig was made from.
	AnnotationSpecHash = GroupName + "/spec-hash"
	// AnnotationExpirationTime is when the kubeconfig's token expires, in RFC 3339.
	AnnotationExpirationTime = GroupName + "/expiration-time"
	// AnnotationLastRotationTime is when the kubeconfig was written, in RFC 3339.
	AnnotationLastRotationTime = GroupName + "/last-rotation-time"
	// AnnotationTemplateKeys lists the labels and annotations that spec.secretTemplate set, in JSON, so that
	// they go when the template loses them.
	AnnotationTemplateKeys = GroupName + "/secret-template-keys"
)
