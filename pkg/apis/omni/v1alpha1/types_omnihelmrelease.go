package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// OmniHelmRelease installs and upgrades one Helm chart in a workload cluster.
type OmniHelmRelease struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniHelmReleaseSpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniHelmReleaseStatus `json:"status,omitempty"`
}

// OmniHelmReleaseSpec says which chart to run where.
type OmniHelmReleaseSpec struct {
	// clusterRef names the OmniCluster.
	// +required
	ClusterRef LocalObjectReference `json:"clusterRef"`

	// kubeconfigSecretRef names the Secret with the kubeconfig of the workload cluster. The key defaults to kubeconfig.
	// +required
	KubeconfigSecretRef SecretKeyReference `json:"kubeconfigSecretRef"`

	// releaseName is Helm's name of the release, at most 53 characters. Defaults to metadata.name. It cannot be changed.
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`

	// namespace of the release in the workload cluster. Defaults to default. It cannot be changed.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// createNamespace makes the namespace if it is missing. It is never deleted.
	// +optional
	CreateNamespace bool `json:"createNamespace"`

	// chart is the chart and its values.
	// +required
	Chart HelmChart `json:"chart"`

	// wait waits until the release's objects are ready.
	// +optional
	Wait bool `json:"wait"`

	// waitForJobs also waits until the release's Jobs are complete. Without wait it does nothing.
	// +optional
	WaitForJobs bool `json:"waitForJobs"`

	// timeout bounds one action, hooks included: 1s to 24h. Default 5m.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`

	// rollbackOnFailure goes back to the last good revision when an upgrade fails.
	// +optional
	RollbackOnFailure *bool `json:"rollbackOnFailure,omitempty"`

	// atomic is the older name of rollbackOnFailure. Set one of the two; both must say the same.
	// +optional
	Atomic *bool `json:"atomic,omitempty"`

	// disableHooks runs no hooks.
	// +optional
	DisableHooks bool `json:"disableHooks"`

	// skipCRDs installs no CRDs of the chart.
	// +optional
	SkipCRDs bool `json:"skipCRDs"`

	// maxHistory is the number of revisions that Helm keeps; 0 keeps all of them. Default 10.
	// +optional
	MaxHistory *int32 `json:"maxHistory,omitempty"`

	// takeOwnership takes over objects that the release did not make, and a whole release of this name that was
	// made with Helm by hand or by another tool.
	// +optional
	TakeOwnership bool `json:"takeOwnership"`

	// interval is how often the release is checked again. At least 30s, default 10m.
	// +optional
	Interval Duration `json:"interval,omitempty"`

	// retries is how often a failed action is tried again before the release stalls. Default 3.
	// +optional
	Retries *int32 `json:"retries,omitempty"`

	// driftDetection says what to do when live objects differ from the release.
	// +optional
	DriftDetection DriftDetection `json:"driftDetection,omitzero"`

	// dependsOn names OmniHelmReleases of this namespace that must be Ready first.
	// +optional
	// +listType=map
	// +listMapKey=name
	DependsOn []LocalObjectReference `json:"dependsOn,omitzero"`

	// suspend takes no action. Deletion still follows deletionPolicy.
	// +optional
	Suspend bool `json:"suspend"`

	// test runs the chart's tests after an install or upgrade.
	// +optional
	Test HelmTest `json:"test"`

	// deletionPolicy is Uninstall (the default) or Orphan.
	// +optional
	DeletionPolicy ReleaseDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ReleaseDeletionPolicy says what happens to a release when the object is deleted.
// +enum
type ReleaseDeletionPolicy string

const (
	// ReleaseUninstall runs helm uninstall.
	ReleaseUninstall ReleaseDeletionPolicy = "Uninstall"
	// ReleaseOrphan leaves the release.
	ReleaseOrphan ReleaseDeletionPolicy = "Orphan"
)

// HelmChart is a chart and its values.
type HelmChart struct {
	// repository is the URL of an HTTP chart repository. An oci:// chart needs none, and does not use it.
	// +optional
	Repository string `json:"repository,omitempty"`

	// chart is the chart's name in the repository, or an oci:// URL.
	// +required
	Chart string `json:"chart"`

	// version of the chart. Unset means the newest stable one.
	// +optional
	Version string `json:"version,omitempty"`

	// values override those of the chart and of valuesFrom.
	// +optional
	Values *FreeForm `json:"values,omitempty"`

	// valuesFrom reads values from ConfigMaps and Secrets, merged in order before values.
	// +optional
	// +listType=atomic
	ValuesFrom []HelmValuesReference `json:"valuesFrom,omitzero"`

	// authSecretRef names a Secret with username and password, or of type kubernetes.io/dockerconfigjson.
	// +optional
	AuthSecretRef *LocalObjectReference `json:"authSecretRef,omitempty"`

	// caSecretRef names a Secret whose ca.crt signs the repository's certificate.
	// +optional
	CASecretRef *LocalObjectReference `json:"caSecretRef,omitempty"`

	// digest pins the chart: sha256:<64 hex digits> of the chart archive, or of the OCI manifest.
	// +optional
	Digest string `json:"digest,omitempty"`

	// verify checks the chart's provenance file.
	// +optional
	Verify *HelmVerify `json:"verify,omitempty"`
}

// HelmVerify checks a chart's provenance.
type HelmVerify struct {
	// keyringSecretRef names the Secret key with the public keyring. The key defaults to keyring.
	// +required
	KeyringSecretRef SecretKeyReference `json:"keyringSecretRef"`
}

// ValuesKind is a kind that values can be read from.
// +enum
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
	// +required
	Kind ValuesKind `json:"kind"`

	// name of the ConfigMap or Secret.
	// +required
	Name string `json:"name"`

	// key inside the object. Defaults to values.yaml.
	// +optional
	Key string `json:"key,omitempty"`

	// targetPath places the text as one value at this dotted path, instead of merging it. It goes over values and all other sources.
	// +optional
	TargetPath string `json:"targetPath,omitempty"`

	// optional ignores a missing object or key. Defaults to false.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// DriftMode says what to do when live objects differ from the release.
// +enum
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
	// +optional
	Mode DriftMode `json:"mode,omitempty"`

	// ignore leaves differences out.
	// +optional
	// +listType=atomic
	Ignore []DriftIgnore `json:"ignore,omitzero"`
}

// IsZero reports whether nothing is said about drift.
func (d DriftDetection) IsZero() bool { return d.Mode == "" && d.Ignore == nil }

// DriftIgnore leaves differences out.
type DriftIgnore struct {
	// target selects objects. Unset means all.
	// +optional
	Target *DriftTarget `json:"target,omitempty"`

	// paths are JSON pointers (RFC 6901) to leave out.
	// +required
	// +listType=set
	Paths []string `json:"paths"`
}

// DriftTarget selects objects of a release; unset members match everything.
type DriftTarget struct {
	// group of the objects.
	// +optional
	Group string `json:"group,omitempty"`

	// version of the objects.
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the objects.
	// +optional
	Kind string `json:"kind,omitempty"`

	// namespace of the objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}

// HelmTest runs the chart's tests.
type HelmTest struct {
	// enable runs the tests.
	// +optional
	Enable bool `json:"enable"`

	// ignoreFailures lets the release be Ready although a test failed.
	// +optional
	IgnoreFailures bool `json:"ignoreFailures"`
}

// OmniHelmReleaseStatus is what the controller did.
type OmniHelmReleaseStatus struct {
	ReconcileStatus `json:",inline"`

	// clusterID is the identity of the workload cluster that the kubeconfig led to: its UUID in Omni, or the UID
	// of its namespace kube-system. Another one stops the object (WrongCluster) until the annotation
	// omni.texashpc.com/accept-cluster names it.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// otherHub is status.otherHub of the OmniCluster, or its status.hubID while that names another hub; or what it was
	// last if there is no OmniCluster any more: the workload cluster belongs to that hub, or may. Nothing is done there,
	// also when this object is deleted.
	// +optional
	OtherHub string `json:"otherHub,omitempty"`

	// chart is the chart that was applied.
	// +optional
	Chart string `json:"chart,omitempty"`

	// chartVersion is the version of the chart that was applied.
	// +optional
	ChartVersion string `json:"chartVersion,omitempty"`

	// chartDigest is the sha256 of the chart archive that was applied.
	// +optional
	ChartDigest string `json:"chartDigest,omitempty"`

	// foundChart is the chart that the repository or registry named last. It counts while that does not answer.
	// +optional
	FoundChart *HelmFoundChart `json:"foundChart,omitempty"`

	// appVersion is the application version of the chart that was applied.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// revision is Helm's number of the release.
	// +optional
	Revision int32 `json:"revision,omitempty"`

	// releaseStatus is Helm's status of the release, such as deployed or failed.
	// +optional
	ReleaseStatus string `json:"releaseStatus,omitempty"`

	// releaseName is the release that was applied.
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`

	// namespace of the release that was applied.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// lastAction is the last Helm action, such as install or upgrade.
	// +optional
	LastAction string `json:"lastAction,omitempty"`

	// lastActionTime is when the last action ended.
	// +optional
	LastActionTime *metav1.Time `json:"lastActionTime,omitempty"`

	// lastAttemptedDigest identifies the chart, values and options of the last action, whether it succeeded or not.
	// +optional
	LastAttemptedDigest string `json:"lastAttemptedDigest,omitempty"`

	// lastAttemptedGeneration is the metadata.generation for which the last action was begun, or that found the release as
	// it should be. A release with a revision of a later generation was made by a state of this object that was lost.
	// +optional
	LastAttemptedGeneration int64 `json:"lastAttemptedGeneration,omitempty"`

	// failures counts failed actions since the last success or change.
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// valuesDigest is the sha256 of the merged values that were applied.
	// +optional
	ValuesDigest string `json:"valuesDigest,omitempty"`

	// history holds the last five revisions, newest first.
	// +optional
	// +listType=map
	// +listMapKey=revision
	History []HelmRevision `json:"history,omitempty"`
}

// HelmFoundChart is the chart that a repository or registry named.
type HelmFoundChart struct {
	// source is a digest of what spec.chart said of the chart and of its signature, without values and credentials. With
	// another one the rest does not count.
	Source string `json:"source"`

	// version of the chart.
	Version string `json:"version"`

	// digest is the sha256 of the chart archive.
	Digest string `json:"digest"`
}

// HelmRevision is one revision of a release.
type HelmRevision struct {
	// revision is Helm's number.
	Revision int32 `json:"revision"`

	// chartVersion is the chart's version.
	// +optional
	ChartVersion string `json:"chartVersion,omitempty"`

	// status is Helm's status of the revision.
	// +optional
	Status string `json:"status,omitempty"`

	// time of the last change.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniHelmReleaseList is a list of OmniHelmReleases.
type OmniHelmReleaseList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniHelmReleases.
	Items []OmniHelmRelease `json:"items"`
}
