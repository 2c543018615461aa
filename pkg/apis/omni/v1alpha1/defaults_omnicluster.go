package v1alpha1

// SetDefaults_OmniClusterSpec sets the change policy and the sync interval.
func SetDefaults_OmniClusterSpec(spec *OmniClusterSpec) {
	defaultTo(&spec.ChangePolicy, ChangePolicyApply)
	defaultTo(&spec.SyncInterval, DefaultSyncInterval)
}

// SetDefaults_Manifest sets the mode.
func SetDefaults_Manifest(manifest *Manifest) { defaultTo(&manifest.Mode, ManifestFull) }
