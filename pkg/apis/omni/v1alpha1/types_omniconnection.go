package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// OmniConnection is one Omni endpoint together with the service account that the controller uses there.
// Deleting it waits until no OmniCluster of the namespace names it.
type OmniConnection struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniConnectionSpec `json:"spec"`

	// status is what the controller found. It is read-only.
	// +optional
	Status OmniConnectionStatus `json:"status,omitempty"`
}

// OmniConnectionSpec says where Omni is and who we are there.
type OmniConnectionSpec struct {
	// endpoint is the URL of the Omni API, such as https://omni.example.com. The annotation
	// omni.texashpc.com/allowed-endpoints of the key's Secret has to name it, else nothing is sent (Secrets without the
	// annotation are a warning, unless omni-controller was started with --require-allowed-endpoint). The schemes http
	// and grpc are for plaintext connections, which omni-controller refuses without --allow-insecure-omni. User info,
	// query and fragment are refused.
	// +required
	Endpoint string `json:"endpoint"`

	// auth names the Omni service account key.
	// +required
	Auth OmniConnectionAuth `json:"auth"`

	// insecureSkipTLSVerify accepts any server certificate. Use caBundle instead wherever you can. omni-controller
	// refuses it without --allow-insecure-omni.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify"`

	// caBundle holds the PEM certificates that sign the endpoint's certificate (base64 in JSON and YAML).
	// Unset means the system's own roots. It cannot be combined with insecureSkipTLSVerify.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// OmniConnectionAuth names the credentials for Omni.
type OmniConnectionAuth struct {
	// serviceAccountSecretRef names the Secret key that holds the bare base64 service account key, the value
	// of OMNI_SERVICE_ACCOUNT_KEY alone. The key inside the Secret defaults to serviceAccountKey. The
	// Secret's annotation omni.texashpc.com/allowed-endpoints holds the URLs that the key may be used with, separated by
	// commas.
	// +required
	ServiceAccountSecretRef SecretKeyReference `json:"serviceAccountSecretRef"`
}

// OmniConnectionStatus is what the controller found.
type OmniConnectionStatus struct {
	ReconcileStatus `json:",inline"`

	// endpoint is the URL that was last connected to.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// serviceAccount describes the service account of the key that was last read.
	// +optional
	ServiceAccount *OmniServiceAccountStatus `json:"serviceAccount,omitempty"`

	// omni says which Omni answers at the endpoint. An upgrade of Omni shows within seconds.
	// +optional
	Omni *OmniServerStatus `json:"omni,omitempty"`

	// access says how people reach the clusters of this Omni: what `kubectl omni kubeconfig` writes. Omni tells it to whoever
	// has the role Reader; none of it is secret.
	// +optional
	Access *OmniAccess `json:"access,omitempty"`
}

// OmniServerStatus is what an Omni says of itself.
type OmniServerStatus struct {
	// version is the release, such as v1.9.3.
	// +optional
	Version string `json:"version,omitempty"`

	// apiVersion is the number of Omni's API: 2 up to Omni 1.10, and 3 from 1.11 on.
	// +optional
	APIVersion int64 `json:"apiVersion,omitempty"`

	// instance is the name of the Omni account.
	// +optional
	Instance string `json:"instance,omitempty"`
}

// OmniAccess says how people reach the clusters of an Omni. Who may do what is decided by the access policies of Omni, when
// somebody has logged in.
type OmniAccess struct {
	// kubernetesProxyURL is the server in every kubeconfig of this Omni.
	KubernetesProxyURL string `json:"kubernetesProxyURL"`

	// oidcIssuerURL is where people log in.
	OIDCIssuerURL string `json:"oidcIssuerURL"`

	// account is the name of the Omni account. The contexts that omnictl writes are named account-cluster.
	Account string `json:"account"`
}

// OmniServiceAccountStatus describes the service account behind a key; never the key itself.
type OmniServiceAccountStatus struct {
	// name of the service account.
	// +optional
	Name string `json:"name,omitempty"`

	// expirationTime is when the key expires, read from the key itself.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniConnectionList is a list of OmniConnections.
type OmniConnectionList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniConnections.
	Items []OmniConnection `json:"items"`
}
