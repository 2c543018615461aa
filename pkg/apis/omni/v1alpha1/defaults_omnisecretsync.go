package v1alpha1

// SetDefaults_OmniSecretSyncSpec sets the key of the kubeconfig Secret and the deletion policy.
func SetDefaults_OmniSecretSyncSpec(spec *OmniSecretSyncSpec) {
	defaultTo(&spec.KubeconfigSecretRef.Key, DefaultKubeconfigKey)
	defaultTo(&spec.DeletionPolicy, DeletionDelete)
}
