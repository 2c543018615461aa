package omnicluster

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// recordOverride writes into the status who lets changes begin out of turn. It does so in the same write that sets
// the annotation, so that no client can leave it out. Validation of the annotation comes later; a refused object is
// not stored.
func recordOverride(o, old *v1alpha1.OmniCluster, user string, now time.Time) {
	value := o.Annotations[v1alpha1.AnnotationRolloutOverride]
	if value == "" || value == old.Annotations[v1alpha1.AnnotationRolloutOverride] {
		return
	}

	hash, reason, _ := strings.Cut(value, " ")

	status := &v1alpha1.OmniClusterRollout{}
	if o.Status.Rollout != nil {
		status = o.Status.Rollout.DeepCopy()
	}

	status.Override = &v1alpha1.RolloutOverride{
		Hash: hash, Reason: strings.TrimSpace(reason), User: user, Time: words.StoredTime(now),
	}
	o.Status.Rollout = status
}

// keepOverride restores what recordOverride wrote: a write of the status cannot change it. It may say that the override
// was used up, if it means that very override: another one may have been recorded since the writer read the object.
func keepOverride(o, old *v1alpha1.OmniCluster) {
	var kept *v1alpha1.RolloutOverride
	if old.Status.Rollout != nil {
		kept = old.Status.Rollout.Override
	}

	if o.Status.Rollout == nil {
		if kept == nil {
			return
		}

		o.Status.Rollout = &v1alpha1.OmniClusterRollout{Governed: old.Status.Rollout.Governed}
	}

	o.Status.Rollout.Override = withUse(kept, o.Status.Rollout.Override)
}

// withUse returns a recorded override with the time of its use, if a writer of the status says that it was used.
func withUse(recorded, written *v1alpha1.RolloutOverride) *v1alpha1.RolloutOverride {
	if recorded == nil || written == nil || recorded.UsedTime != nil {
		return recorded
	}

	used := recorded.DeepCopy()
	used.UsedTime = written.UsedTime

	if !equality.Semantic.DeepEqual(used, written) {
		return recorded
	}

	return used
}
