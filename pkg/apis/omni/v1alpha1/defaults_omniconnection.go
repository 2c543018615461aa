package v1alpha1

// SetDefaults_OmniConnectionSpec sets the key of the service account Secret.
func SetDefaults_OmniConnectionSpec(spec *OmniConnectionSpec) {
	defaultTo(&spec.Auth.ServiceAccountSecretRef.Key, DefaultServiceAccountKey)
}
