package omni

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniHelmRelease installs and upgrades one Helm chart in a workload cluster.
type OmniHelmRelease struct {
	metav1.TypeMeta

	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is what you want.
	Spec OmniHelmReleaseSpec

	// status is what the controller found and did. It is read-only.
	Status OmniHelmReleaseStatus
}

// OmniHelmReleaseSpec says which chart to run where.
type OmniHelmReleaseSpec struct {
	// clusterRef names the OmniCluster.
	ClusterRef LocalObjectReference

	// kubeconfigSecretRef names the Secret with the kubeconfig of the workload cluster. The key defaults to kubeconfig.
	KubeconfigSecretRef SecretKeyReference

	// releaseName is Helm's name of the release, at most 53 characters. Defaults to metadata.name. It cannot be changed.
	ReleaseName string

	// namespace of the release in the workload cluster. Defaults to default. It cannot be changed.
	Namespace string

	// createNamespace makes the namespace if it is missing. It is never deleted.
	CreateNamespace bool

	// chart is the chart and its values.
	Chart HelmChart

	// wait waits until the release's objects are ready.
	Wait bool

	// waitForJobs also waits until the release's Jobs are complete. It needs wait.
	WaitForJobs bool

	// timeout bounds one action, hooks included. Default 5m.
	Timeout Duration

	// rollbackOnFailure goes back to the last good revision when an upgrade fails.
	RollbackOnFailure bool

	// disableHooks runs no hooks.
	DisableHooks bool

	// skipCRDs installs no CRDs of the chart.
	SkipCRDs bool

	// maxHistory is the number of revisions that Helm keeps, at least 1. Default 10.
	MaxHistory *int32

	// takeOwnership takes over objects that the release did not make, and a whole release of this name that was
	// made with Helm by hand or by another tool.
	TakeOwnership bool

	// interval is how often the release is checked again. At least 30s, default 10m.
	Interval Duration

	// retries is how often a failed action is tried again before the release stalls. Default 3.
	Retries *int32

	// driftDetection says what to do when live objects differ from the release.
	DriftDetection DriftDetection

	// dependsOn names OmniHelmReleases of this namespace that must be Ready first.
	DependsOn []LocalObjectReference

	// suspend takes no action. Deletion still follows deletionPolicy.
	Suspend bool

	// test runs the chart's tests after an install or upgrade.
	Test HelmTest

	// deletionPolicy is Uninstall (the default) or Orphan.
	DeletionPolicy ReleaseDeletionPolicy
}

// ReleaseDeletionPolicy says what happens to a release when the object is deleted.
type ReleaseDeletionPolicy string

const (
	// ReleaseUninstall runs helm uninstall.
	ReleaseUninstall ReleaseDeletionPolicy = "Uninstall"
	// ReleaseOrphan leaves the release.
	ReleaseOrphan ReleaseDeletionPolicy = "Orphan"
)

// HelmChart is a chart and its values.
type HelmChart struct {
	// repository is the URL of an HTTP chart repository. An oci:// chart needs none.
	Repository string

	// chart is the chart's name in the repository, or an oci:// URL.
	Chart string

	// version of the chart. Unset means the newest stable one.
	Version string

	// values override those of the chart and of valuesFrom.
	Values *FreeForm

	// valuesFrom reads values from ConfigMaps and Secrets, merged in order before values.
	ValuesFrom []HelmValuesReference

	// authSecretRef names a Secret with username and password, or of type kubernetes.io/dockerconfigjson.
	AuthSecretRef *LocalObjectReference

	// caSecretRef names a Secret whose ca.crt signs the repository's certificate.
	CASecretRef *LocalObjectReference

	// digest pins the chart: sha256:<64 hex digits> of the chart archive, or of the OCI manifest.
	Digest string

	// verify checks the chart's provenance file.
	Verify *HelmVerify
}

// HelmVerify checks a chart's provenance.
type HelmVerify struct {
	// keyringSecretRef names the Secret key with the public keyring. The key defaults to keyring.
	KeyringSecretRef SecretKeyReference
}

// ValuesKind is a kind that values can be read from.
type ValuesKind string

const (
	// ValuesConfigMap reads values from a ConfigMap.
	ValuesConfigMap ValuesKind = "ConfigMap"
	// ValuesSecret reads values from a Secret.
	ValuesSecret ValuesKind = "Secret"
)

// HelmValuesReference reads values from a ConfigMap or Secret of this namespace.
type HelmValuesReference struct {
	// kind is ConfigMap or Secret.
	Kind ValuesKind

	// name of the ConfigMap or Secret.
	Name string

	// key inside the object. Defaults to values.yaml.
	Key string

	// targetPath places the text as one value at this dotted path, instead of merging it.
	TargetPath string

	// optional ignores a missing object or key.
	Optional bool
}

// DriftMode says what to do when live objects differ from the release.
type DriftMode string

const (
	// DriftDisabled does not look.
	DriftDisabled DriftMode = "Disabled"
	// DriftWarn shows the difference.
	DriftWarn DriftMode = "Warn"
	// DriftCorrect applies the release again.
	DriftCorrect DriftMode = "Correct"
)

// DriftDetection says what to do when live objects differ from the release.
type DriftDetection struct {
	// mode is Disabled (the default), Warn or Correct.
	Mode DriftMode

	// ignore leaves differences out.
	Ignore []DriftIgnore
}

// DriftIgnore leaves differences out.
type DriftIgnore struct {
	// target selects objects. Unset means all.
	Target DriftTarget

	// paths are JSON pointers (RFC 6901) to leave out.
	Paths []string
}

// DriftTarget selects objects of a release; unset members match everything.
type DriftTarget struct {
	// group of the objects.
	Group string

	// version of the objects.
	Version string

	// kind of the objects.
	Kind string

	// namespace of the objects.
	Namespace string

	// name of the object.
	Name string
}

// HelmTest runs the chart's tests.
type HelmTest struct {
	// enable runs the tests.
	Enable bool

	// ignoreFailures lets the release be Ready although a test failed.
	IgnoreFailures bool
}

// OmniHelmReleaseStatus is what the controller did.
type OmniHelmReleaseStatus struct {
	ReconcileStatus

	// clusterID is the identity of the workload cluster that the kubeconfig led to: its UUID in Omni, or the UID
	// of its namespace kube-system. Another one stops the object (WrongCluster) until the annotation
	// omni.texashpc.com/accept-cluster names it.
	ClusterID string

	// chart is the chart that was applied.
	Chart string

	// chartVersion is the version of the chart that was applied.
	ChartVersion string

	// chartDigest is the sha256 of the chart archive that was applied.
	ChartDigest string

	// appVersion is the application version of the chart that was applied.
	AppVersion string

	// revision is Helm's number of the release.
	Revision int32

	// releaseStatus is Helm's status of the release, such as deployed or failed.
	ReleaseStatus string

	// releaseName is the release that was applied.
	ReleaseName string

	// namespace of the release that was applied.
	Namespace string

	// lastAction is the last Helm action, such as install or upgrade.
	LastAction string

	// lastActionTime is when the last action ended.
	LastActionTime *metav1.Time

	// lastAttemptedDigest identifies the chart, values and options of the last action, whether it succeeded or not.
	LastAttemptedDigest string

	// failures counts failed actions since the last success or change.
	Failures int32

	// valuesDigest is the sha256 of the merged values that were applied.
	ValuesDigest string

	// history holds the last five revisions, newest first.
	History []HelmRevision
}

// HelmRevision is one revision of a release.
type HelmRevision struct {
	// revision is Helm's number.
	Revision int32

	// chartVersion is the chart's version.
	ChartVersion string

	// status is Helm's status of the revision.
	Status string

	// time of the last change.
	Time *metav1.Time
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniHelmReleaseList is a list of OmniHelmReleases.
type OmniHelmReleaseList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the OmniHelmReleases.
	Items []OmniHelmRelease
}
