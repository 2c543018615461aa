package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// OmniRolloutPolicy says when, and in which order, changes of the OmniClusters of its namespace may begin. It never
// writes a spec: what it holds back stays in the objects as Git has it, and is applied when its turn comes.
type OmniRolloutPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want.
	// +required
	Spec OmniRolloutPolicySpec `json:"spec"`

	// status is what the controller found and did. It is read-only.
	// +optional
	Status OmniRolloutPolicyStatus `json:"status,omitempty"`
}

// OmniRolloutPolicySpec says which changes of which clusters wait for what.
type OmniRolloutPolicySpec struct {
	// clusterSelector selects the OmniClusters of this namespace by their labels. An empty one selects all of them.
	// A cluster that two policies select is held until one of them lets it go.
	// +required
	ClusterSelector *ClusterSelector `json:"clusterSelector"`

	// changes are the kinds of changes that wait: KubernetesVersion, TalosVersion, MachineConfig, MachineImage,
	// MachineRemoval, Manifests. Unset means all of them.
	// +optional
	// +listType=set
	Changes []ChangeKind `json:"changes,omitzero"`

	// stages are taken one after the other, 10 at most. A cluster belongs to the first whose selector matches.
	// +required
	// +listType=map
	// +listMapKey=name
	Stages []RolloutStage `json:"stages"`

	// arrivalTime is how long a change other than a version has to be seen before a later stage takes it, so that the
	// earlier stages can have got it, too. From 0s to 24h; 15m by default.
	// +optional
	ArrivalTime Duration `json:"arrivalTime,omitempty"`

	// maxFailed is how many clusters, of all stages together, may have failed before nothing more begins. From 0 (the
	// default) to 100.
	// +optional
	MaxFailed int32 `json:"maxFailed"`

	// progressDeadline is how long a cluster may take until it is Ready with its changes; then it has failed. From 10m
	// to 48h; 2h by default.
	// +optional
	ProgressDeadline Duration `json:"progressDeadline,omitempty"`

	// freezes are times in which nothing begins, 20 at most.
	// +optional
	// +listType=map
	// +listMapKey=name
	Freezes []RolloutFreeze `json:"freezes,omitzero"`

	// hold keeps everything from beginning until it is taken back.
	// +optional
	Hold bool `json:"hold"`
}

// ClusterSelector selects OmniClusters by their labels: those that meet all of it. It is a label selector of Kubernetes that keeps
// an empty list or map as it was written.
// +structType=atomic
type ClusterSelector struct {
	// matchLabels are labels with their values.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitzero"`

	// matchExpressions are requirements on labels.
	// +optional
	// +listType=atomic
	MatchExpressions []ClusterSelectorRequirement `json:"matchExpressions,omitzero"`
}

// ClusterSelectorRequirement is what a label has to be.
type ClusterSelectorRequirement struct {
	// key of the label.
	// +required
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist.
	// +required
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values for In and NotIn; the others take none.
	// +optional
	// +listType=atomic
	Values []string `json:"values,omitzero"`
}

// LabelSelector returns the selector as Kubernetes has it. That of nil is nil, which selects nothing.
func (s *ClusterSelector) LabelSelector() *metav1.LabelSelector {
	if s == nil {
		return nil
	}

	selector := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, requirement := range s.MatchExpressions {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement(requirement))
	}

	return selector
}

// ChangeKind is what a change of a cluster in Omni is about, for an OmniRolloutPolicy.
// +enum
type ChangeKind string

const (
	// ChangeKubernetesVersion is another Kubernetes version of the cluster.
	ChangeKubernetesVersion ChangeKind = "KubernetesVersion"
	// ChangeTalosVersion is another Talos version of the cluster.
	ChangeTalosVersion ChangeKind = "TalosVersion"
	// ChangeMachineConfig is a config patch or an install disk of machines that the cluster has now, or the end of a
	// machine's lock. Talos may reboot them.
	ChangeMachineConfig ChangeKind = "MachineConfig"
	// ChangeMachineImage is a change of the system extensions or kernel arguments of machines that the cluster has now:
	// they get another image, and reboot.
	ChangeMachineImage ChangeKind = "MachineImage"
	// ChangeMachineRemoval takes machines out of the cluster.
	ChangeMachineRemoval ChangeKind = "MachineRemoval"
	// ChangeManifests is a change of the Kubernetes objects that Omni applies.
	ChangeManifests ChangeKind = "Manifests"
)

// RolloutPromotion says who may begin a stage.
// +enum
type RolloutPromotion string

const (
	// PromotionAutomatic begins a stage when the earlier ones have qualified the change.
	PromotionAutomatic RolloutPromotion = "Automatic"
	// PromotionManual begins a stage only while the annotation omni.texashpc.com/promote-<stage> of the policy allows it.
	PromotionManual RolloutPromotion = "Manual"
)

// RolloutStage is one step of a rollout.
type RolloutStage struct {
	// name of the stage, of at most 55 characters: the annotation that promotes it ends with the name.
	// +required
	Name string `json:"name"`

	// clusterSelector selects the stage's clusters, among those of the policy that no earlier stage takes. The last
	// stage has none: it takes the rest.
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`

	// maxConcurrent is how many clusters of the stage may be at work at once: a number from 1 (the default) to 100, or
	// a percentage of the stage's clusters, which is rounded down and is at least 1 and at most 100.
	// +optional
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// soakTime is how long clusters of this stage have to run a change well before the next stage takes it. From 0s to
	// 720h; 1h by default.
	// +optional
	SoakTime Duration `json:"soakTime,omitempty"`

	// minQualified is how many clusters of the stage have to run a version well: a number from 1 (the default) to 100,
	// or a percentage of the stage's clusters, which is rounded up. Of the clusters that are not Ready, those that run
	// the version are among them.
	// +optional
	MinQualified *intstr.IntOrString `json:"minQualified,omitempty"`

	// promotion says who may begin this stage: Automatic (the default) or Manual.
	// +optional
	Promotion RolloutPromotion `json:"promotion,omitempty"`

	// windows are the times in which changes may begin, joined; at most 14. Unset means at any time.
	// +optional
	// +listType=atomic
	Windows []MaintenanceWindow `json:"windows,omitzero"`
}

// Weekday is a day of the week.
// +enum
type Weekday string

// The days.
const (
	Monday    Weekday = "Mon"
	Tuesday   Weekday = "Tue"
	Wednesday Weekday = "Wed"
	Thursday  Weekday = "Thu"
	Friday    Weekday = "Fri"
	Saturday  Weekday = "Sat"
	Sunday    Weekday = "Sun"
)

// MaintenanceWindow is a time of the week in which changes may begin. What has begun goes on after its end.
type MaintenanceWindow struct {
	// days are the days on which the window opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun.
	// +required
	// +listType=set
	Days []Weekday `json:"days"`

	// start is the time of day at which it opens, such as 02:00. Where the clocks are put forward past it, the window
	// opens when they are; where they are put back over it, at the first of the two.
	// +required
	Start string `json:"start"`

	// duration is how long it is open, from 15m to 24h of elapsed time.
	// +required
	Duration Duration `json:"duration"`

	// timeZone is UTC or a name of the IANA database with a slash, such as Europe/Berlin. The annotation
	// omni.texashpc.com/time-zone of an OmniCluster takes its place.
	// +required
	TimeZone string `json:"timeZone"`
}

// RolloutFreeze is a time in which nothing begins.
type RolloutFreeze struct {
	// name of the freeze.
	// +required
	Name string `json:"name"`

	// from is its first instant.
	// +required
	From metav1.Time `json:"from"`

	// until is the first instant after it, at most 120 days later.
	// +required
	Until metav1.Time `json:"until"`
}

// OmniRolloutPolicyStatus is how far the rollout is.
type OmniRolloutPolicyStatus struct {
	ReconcileStatus `json:",inline"`

	// stages are the stages of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	Stages []RolloutStageStatus `json:"stages,omitempty"`

	// admitted are the clusters whose changes may begin, or are at work; at most 200.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	Admitted []RolloutTicket `json:"admitted,omitempty"`

	// failed are the clusters that failed and are not well yet, at most 50.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	Failed []FailedCluster `json:"failed,omitempty"`

	// failedCount is the number of clusters that failed and are not well yet.
	// +optional
	FailedCount int32 `json:"failedCount"`

	// held is the number of clusters with changes that wait.
	// +optional
	Held int32 `json:"held"`
}

// RolloutStageStatus is how far a stage is.
type RolloutStageStatus struct {
	// name of the stage.
	Name string `json:"name"`

	// clusters is the number of clusters in the stage, but for those that ask for nothing: suspended or only observed.
	Clusters int32 `json:"clusters"`

	// held is the number of clusters with changes that wait.
	// +optional
	Held int32 `json:"held"`

	// admitted is the number of clusters whose changes may begin, or are at work.
	// +optional
	Admitted int32 `json:"admitted"`

	// failed is the number of clusters that failed and are not well yet.
	// +optional
	Failed int32 `json:"failed"`

	// notReady is the number of clusters that are not Ready, for whatever reason, and are not counted in held, admitted
	// or failed.
	// +optional
	NotReady int32 `json:"notReady"`

	// open says whether changes may begin by the stage's windows and the freezes.
	Open bool `json:"open"`

	// nextChange is when open is another one. Unset if it stays.
	// +optional
	NextChange *metav1.Time `json:"nextChange,omitempty"`

	// promotedUntil is until when the stage may begin without the earlier ones. Unset unless somebody promotes it.
	// +optional
	PromotedUntil *metav1.Time `json:"promotedUntil,omitempty"`

	// qualified are the versions that the stage has proved, the last ten of Kubernetes and of Talos.
	// +optional
	// +listType=atomic
	Qualified []QualifiedVersion `json:"qualified,omitempty"`

	// soaking are versions that clusters of the stage run, and that it has not proved yet; at most 10.
	// +optional
	// +listType=atomic
	Soaking []SoakingVersion `json:"soaking,omitempty"`

	// quietSince is since when no cluster of the stage has a change other than a version that waits or is at work.
	// Unset while one has, and while no cluster runs well, or omni-controller has not looked at one in Omni since it started.
	// +optional
	QuietSince *metav1.Time `json:"quietSince,omitempty"`

	// lastQuietSince is what quietSince was before the last cluster of the stage stopped running well. If one runs well
	// again without such a change, quietSince goes on from it. Unset at all other times.
	// +optional
	LastQuietSince *metav1.Time `json:"lastQuietSince,omitempty"`
}

// QualifiedVersion is a version that a stage has proved. Exactly one of kubernetes and talos is set.
type QualifiedVersion struct {
	// kubernetes is the version of Kubernetes.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`

	// talos is the version of Talos.
	// +optional
	Talos string `json:"talos,omitempty"`

	// since is when it was proved.
	Since metav1.Time `json:"since"`
}

// SoakingVersion is a version that a stage runs and has not proved yet. Exactly one of kubernetes and talos is set.
type SoakingVersion struct {
	// kubernetes is the version of Kubernetes.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`

	// talos is the version of Talos.
	// +optional
	Talos string `json:"talos,omitempty"`

	// clusters is the number of clusters of the stage that run it and are Ready.
	Clusters int32 `json:"clusters"`

	// needed is the number of clusters that have to.
	Needed int32 `json:"needed"`

	// until is when it will have run long enough, if nothing changes. In the past while omni-controller has not looked at
	// enough of these clusters in Omni since it started. Unset while too few clusters run it, or a cluster of the stage still
	// has to get it.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// RolloutTicket lets the changes of one cluster begin.
type RolloutTicket struct {
	// cluster is the name of the OmniCluster.
	Cluster string `json:"cluster"`

	// uid of the OmniCluster.
	UID string `json:"uid"`

	// stage that the cluster was in.
	Stage string `json:"stage"`

	// hash is the status.rollout.hash of the OmniCluster: the ticket is for these changes.
	Hash string `json:"hash"`

	// since is when the ticket was given.
	Since metav1.Time `json:"since"`
}

// FailedCluster is a cluster whose changes failed.
type FailedCluster struct {
	// cluster is the name of the OmniCluster.
	Cluster string `json:"cluster"`

	// stage of the cluster.
	// +optional
	Stage string `json:"stage,omitempty"`

	// since is when they failed.
	Since metav1.Time `json:"since"`

	// message says why.
	// +optional
	Message string `json:"message,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OmniRolloutPolicyList is a list of OmniRolloutPolicies.
type OmniRolloutPolicyList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the OmniRolloutPolicies.
	Items []OmniRolloutPolicy `json:"items"`
}
