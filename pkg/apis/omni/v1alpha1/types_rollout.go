package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OmniClusterRollout is what an OmniRolloutPolicy has to do with a cluster's changes.
type OmniClusterRollout struct {
	// governed says whether the cluster's changes wait for their turn. They do not until the cluster was Ready for the
	// first time, unless it was adopted.
	Governed bool `json:"governed"`

	// policy is the OmniRolloutPolicy that selects the cluster, or that held changes of it before; one of them if several
	// select it. Empty if none does.
	// +optional
	Policy string `json:"policy,omitempty"`

	// stage is the policy's stage that the cluster is in. Unset if more than one policy selects the cluster, or none.
	// +optional
	Stage string `json:"stage,omitempty"`

	// state is Held (changes wait), Admitted (they may begin, or are at work) or Failed (they failed, and nothing waits).
	// Unset if there is nothing to do. Changes that failed and were not made, such as a version that Omni refuses, are
	// Held, with the reason RolloutFailed; status.rollout.failure has what failed.
	// +optional
	State RolloutState `json:"state,omitempty"`

	// reason is why changes wait: that of the condition Held.
	// +optional
	Reason string `json:"reason,omitempty"`

	// hash identifies the changes that wait, or are at work.
	// +optional
	Hash string `json:"hash,omitempty"`

	// kinds are what these changes are about.
	// +optional
	// +listType=set
	Kinds []ChangeKind `json:"kinds,omitempty"`

	// changes identifies them one by one, at most 256. More than that wait for the next turn. Changes that waited stay
	// here while they cannot be made for another reason, such as a lock in Omni: they are held if the policy no longer
	// selects the cluster.
	// +optional
	// +listType=atomic
	Changes []string `json:"changes,omitempty"`

	// heldSince is since when changes have been waiting without a break.
	// +optional
	HeldSince *metav1.Time `json:"heldSince,omitempty"`

	// changedSince is since when no other change has joined those that wait.
	// +optional
	ChangedSince *metav1.Time `json:"changedSince,omitempty"`

	// admittedSince is since when the changes may begin, or are at work.
	// +optional
	AdmittedSince *metav1.Time `json:"admittedSince,omitempty"`

	// notBefore is the next instant at which they may begin, as far as it is known.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// wellSince is since when Omni says, without a break, that the cluster runs well with the versions that it was told to
	// run. Unset while it does not. While Omni does not answer, it stays: nothing else is known.
	// +optional
	WellSince *metav1.Time `json:"wellSince,omitempty"`

	// last is how the cluster's last turn ended.
	// +optional
	Last *RolloutResult `json:"last,omitempty"`

	// failure is what failed. It stays until the cluster is Ready with what its documents ask for.
	// +optional
	Failure *RolloutFailure `json:"failure,omitempty"`

	// override is the last value of the annotation omni.texashpc.com/rollout-override. omni-apiserver writes it, and
	// omni-controller its usedTime.
	// +optional
	Override *RolloutOverride `json:"override,omitempty"`
}

// RolloutState is how far a cluster's changes are.
// +enum
type RolloutState string

const (
	// RolloutHeld means that changes wait.
	RolloutHeld RolloutState = "Held"
	// RolloutAdmitted means that changes may begin, or are at work.
	RolloutAdmitted RolloutState = "Admitted"
	// RolloutFailed means that changes failed, the cluster is not well yet, and none are left to make.
	RolloutFailed RolloutState = "Failed"
)

// RolloutOutcome is how a turn ended.
// +enum
type RolloutOutcome string

const (
	// RolloutDone means that the cluster is Ready with the changes.
	RolloutDone RolloutOutcome = "Done"
	// RolloutUnsuccessful means that the changes failed.
	RolloutUnsuccessful RolloutOutcome = "Failed"
	// RolloutReturned means that nothing had begun when the turn was over: other changes came, or the window closed.
	RolloutReturned RolloutOutcome = "Returned"
)

// RolloutResult is how a turn ended.
type RolloutResult struct {
	// hash of the changes.
	Hash string `json:"hash"`

	// result is Done, Failed or Returned.
	Result RolloutOutcome `json:"result"`

	// time is when it ended.
	Time metav1.Time `json:"time"`
}

// RolloutFailure is what failed.
type RolloutFailure struct {
	// hash of the changes that failed.
	Hash string `json:"hash"`

	// left is the hash of those that were not made. Other changes than these are taken for the fix.
	// +optional
	Left string `json:"left,omitempty"`

	// time is when they failed.
	Time metav1.Time `json:"time"`

	// message says why.
	// +optional
	Message string `json:"message,omitempty"`
}

// RolloutOverride says who let changes begin out of turn.
type RolloutOverride struct {
	// hash of the changes.
	Hash string `json:"hash"`

	// reason is what the user gave as the reason.
	Reason string `json:"reason"`

	// user is who set the annotation.
	User string `json:"user"`

	// time is when it was set.
	Time metav1.Time `json:"time"`

	// usedTime is when the turn of these changes ended. The override lets nothing begin any more: if the same changes wait
	// again later, the annotation has to be set again, with another reason, or removed first.
	// +optional
	UsedTime *metav1.Time `json:"usedTime,omitempty"`
}
