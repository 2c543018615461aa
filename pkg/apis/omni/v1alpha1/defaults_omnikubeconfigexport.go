package v1alpha1

// SetDefaults_OmniKubeconfigExportSpec sets the key of the target Secret, the format and the deletion policy.
func SetDefaults_OmniKubeconfigExportSpec(spec *OmniKubeconfigExportSpec) {
	defaultTo(&spec.TargetSecretRef.Key, DefaultKubeconfigKey)
	defaultTo(&spec.Format, FormatKubeconfig)
	defaultTo(&spec.DeletionPolicy, DeletionDelete)
}
