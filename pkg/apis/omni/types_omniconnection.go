package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniConnection is one Omni endpoint together with the service account that the controller uses there.
// Deleting it waits until no OmniCluster of the namespace names it.
type OmniConnection struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniConnectionSpec

	// status is what the controller found. It is read-only.
	Status OmniConnectionStatus
}

// OmniConnectionSpec says where Omni is and who we are there.
type OmniConnectionSpec struct {
	// endpoint is the URL of the Omni API, such as https://omni.example.com. The annotation
	// omni.texashpc.com/allowed-endpoints of the key's Secret has to name it, else nothing is sent (Secrets without the
	// annotation are a warning, unless omni-controller was started with --require-allowed-endpoint). The schemes http
	// and grpc are for plaintext connections, which omni-controller refuses without --allow-insecure-omni. User info,
	// query and fragment are refused.
	Endpoint string

	// auth names the Omni service account key.
	Auth OmniConnectionAuth

	// insecureSkipTLSVerify accepts any server certificate. Use caBundle instead wherever you can. omni-controller
	// refuses it without --allow-insecure-omni.
	InsecureSkipTLSVerify bool

	// caBundle holds the PEM certificates that sign the endpoint's certificate (base64 in JSON and YAML).
	// Unset means the system's own roots. It cannot be combined with insecureSkipTLSVerify.
	CABundle []byte
}

// OmniConnectionAuth names the credentials for Omni.
type OmniConnectionAuth struct {
	// serviceAccountSecretRef names the Secret key that holds the bare base64 service account key, the value
	// of OMNI_SERVICE_ACCOUNT_KEY alone. The key inside the Secret defaults to serviceAccountKey. The
	// Secret's annotation omni.texashpc.com/allowed-endpoints holds the URLs that the key may be used with, separated by
	// commas.
	ServiceAccountSecretRef SecretKeyReference
}

// OmniConnectionStatus is what the controller found.
type OmniConnectionStatus struct {
	ReconcileStatus

	// endpoint is the URL that was last connected to.
	Endpoint string

	// serviceAccount describes the service account of the key that was last read.
	ServiceAccount *OmniServiceAccountStatus
}

// OmniServiceAccountStatus describes the service account behind a key; never the key itself.
type OmniServiceAccountStatus struct {
	// name of the service account.
	Name string

	// expirationTime is when the key expires, read from the key itself.
	ExpirationTime *metav1.Time
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniConnectionList is a list of OmniConnections.
type OmniConnectionList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniConnections.
	Items []OmniConnection
}
