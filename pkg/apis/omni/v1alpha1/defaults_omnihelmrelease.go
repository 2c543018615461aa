package v1alpha1

// SetDefaults_OmniHelmReleaseSpec sets everything of a release that has a default.
func SetDefaults_OmniHelmReleaseSpec(spec *OmniHelmReleaseSpec) {
	defaultTo(&spec.KubeconfigSecretRef.Key, DefaultKubeconfigKey)
	defaultTo(&spec.Namespace, DefaultHelmNamespace)
	defaultTo(&spec.Timeout, DefaultHelmTimeout)
	defaultTo(&spec.Interval, DefaultHelmInterval)
	defaultTo(&spec.DriftDetection.Mode, DriftDisabled)
	defaultTo(&spec.DeletionPolicy, ReleaseUninstall)

	if spec.MaxHistory == nil {
		spec.MaxHistory = new(DefaultHelmMaxHistory)
	}

	if spec.Retries == nil {
		spec.Retries = new(DefaultHelmRetries)
	}
}

// SetDefaults_HelmValuesReference sets the key of the values.
func SetDefaults_HelmValuesReference(ref *HelmValuesReference) { defaultTo(&ref.Key, DefaultValuesKey) }

// SetDefaults_HelmVerify sets the key of the keyring.
func SetDefaults_HelmVerify(verify *HelmVerify) {
	defaultTo(&verify.KeyringSecretRef.Key, DefaultKeyringKey)
}
