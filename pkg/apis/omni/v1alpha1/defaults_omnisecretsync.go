package v1alpha1

// SetDefaults_OmniSecretSyncSpec sets the key of the kubeconfig Secret.
func SetDefaults_OmniSecretSyncSpec(spec *OmniSecretSyncSpec) {
	defaultTo(&spec.KubeconfigSecretRef.Key, DefaultKubeconfigKey)
}
