package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Defaults. Fields in which Omni distinguishes unset from empty have none, and effective names are never written into a
// spec (see effective.go).
const (
	// DefaultServiceAccountKey is the Secret key of an Omni service account key.
	DefaultServiceAccountKey = "serviceAccountKey"
	// DefaultKubeconfigKey is the Secret key of a kubeconfig.
	DefaultKubeconfigKey = "kubeconfig"
	// DefaultValuesKey is the key of Helm values in a ConfigMap or Secret.
	DefaultValuesKey = "values.yaml"
	// DefaultKeyringKey is the Secret key of a public keyring.
	DefaultKeyringKey = "keyring"
	// MinSyncInterval replaces a shorter spec.syncInterval.
	MinSyncInterval = 30 * time.Second

	// DefaultSyncInterval is how often an OmniCluster's plan is computed when nothing triggers it.
	DefaultSyncInterval Duration = "5m"
	// DefaultHelmInterval is how often an OmniHelmRelease is checked when nothing triggers it.
	DefaultHelmInterval Duration = "10m"
	// DefaultHelmTimeout bounds one Helm action.
	DefaultHelmTimeout Duration = "5m"
	// DefaultHelmNamespace is the namespace of a Helm release.
	DefaultHelmNamespace = "default"
	// DefaultHelmRetries is how often a failed Helm action is tried again.
	DefaultHelmRetries int32 = 3
	// DefaultHelmMaxHistory is the number of Helm revisions that are kept.
	DefaultHelmMaxHistory int32 = 10

	// DefaultArrivalTime is how long a change other than a version is seen before a later stage takes it.
	DefaultArrivalTime Duration = "15m"
	// DefaultProgressDeadline is how long a cluster may take to be Ready with its changes.
	DefaultProgressDeadline Duration = "2h"
	// DefaultSoakTime is how long a stage runs a change before the next one takes it.
	DefaultSoakTime Duration = "1h"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error { return RegisterDefaults(scheme) }

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// SetDefaults_OmniClusterSpec sets the change policy and the sync interval.
func SetDefaults_OmniClusterSpec(spec *OmniClusterSpec) {
	defaultTo(&spec.ChangePolicy, ChangePolicyApply)
	defaultTo(&spec.SyncInterval, DefaultSyncInterval)
}

// SetDefaults_OmniConnectionSpec sets the key of the service account Secret.
func SetDefaults_OmniConnectionSpec(spec *OmniConnectionSpec) {
	defaultTo(&spec.Auth.ServiceAccountSecretRef.Key, DefaultServiceAccountKey)
}

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

// SetDefaults_HelmVerify sets the key of the keyring.
func SetDefaults_HelmVerify(verify *HelmVerify) {
	defaultTo(&verify.KeyringSecretRef.Key, DefaultKeyringKey)
}

// SetDefaults_OmniKubeconfigExportSpec sets the key of the target Secret, the format and the deletion policy.
func SetDefaults_OmniKubeconfigExportSpec(spec *OmniKubeconfigExportSpec) {
	defaultTo(&spec.TargetSecretRef.Key, DefaultKubeconfigKey)
	defaultTo(&spec.Format, FormatKubeconfig)
	defaultTo(&spec.DeletionPolicy, DeletionDelete)
}

// SetDefaults_OmniRolloutPolicySpec sets the times. Nothing is set in the stages, whose fields count as their defaults
// while they are unset: client-side apply patches the stages as one value, so a default in one of them would be a
// difference between the object in Git and the stored one each time.
func SetDefaults_OmniRolloutPolicySpec(spec *OmniRolloutPolicySpec) {
	defaultTo(&spec.ArrivalTime, DefaultArrivalTime)
	defaultTo(&spec.ProgressDeadline, DefaultProgressDeadline)
}

// SetDefaults_OmniSecretSyncSpec sets the key of the kubeconfig Secret and the deletion policy.
func SetDefaults_OmniSecretSyncSpec(spec *OmniSecretSyncSpec) {
	defaultTo(&spec.KubeconfigSecretRef.Key, DefaultKubeconfigKey)
	defaultTo(&spec.DeletionPolicy, DeletionDelete)
}
