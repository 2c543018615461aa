package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Defaults that several kinds share. The functions that set them are in defaults_<kind>.go. Fields in which Omni
// distinguishes unset from empty have no default, and effective names are never written into a spec (see
// effective.go).
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
)

func addDefaultingFuncs(scheme *runtime.Scheme) error { return RegisterDefaults(scheme) }

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
