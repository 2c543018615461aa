package kit

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// none is what kubectl prints for an empty value.
const none = "<none>"

// ReadyColumn shows the status of the Ready condition.
func ReadyColumn[T Object]() Column[T] {
	return Column[T]{
		Name:        "Ready",
		Description: "Whether the object is fully done: True, False, or Unknown while nobody has looked yet.",
		Cell: func(obj T) any {
			if ready := readyCondition(obj); ready != nil {
				return string(ready.Status)
			}

			return string(metav1.ConditionUnknown)
		},
	}
}

// ClusterColumn shows the OmniCluster that an object names.
func ClusterColumn[T Object]() Column[T] {
	return Column[T]{
		Name:        "Cluster",
		Description: "OmniCluster that this object belongs to.",
		Cell:        func(obj T) any { return v1alpha1.ClusterRefOf(obj) },
	}
}

// ReasonColumn shows the reason of the Ready condition under the given heading.
func ReasonColumn[T Object](name string, wide bool) Column[T] {
	return Column[T]{
		Name:        name,
		Description: "Why the object is Ready or not, in one word.",
		Wide:        wide,
		Cell: func(obj T) any {
			if ready := readyCondition(obj); ready != nil {
				return ready.Reason
			}

			return none
		},
	}
}

// MessageColumn shows the message of the Ready condition in the wide output.
func MessageColumn[T Object]() Column[T] {
	return Column[T]{
		Name:        "Message",
		Description: "Why the object is Ready or not, in a sentence.",
		Wide:        true,
		Cell: func(obj T) any {
			if ready := readyCondition(obj); ready != nil {
				return ready.Message
			}

			return none
		},
	}
}

func readyCondition[T Object](obj T) *metav1.Condition {
	return meta.FindStatusCondition(obj.GetReconcileStatus().Conditions, v1alpha1.ConditionReady)
}

// OrNone returns the value, or what kubectl prints for an empty one.
func OrNone(value string) string {
	if value == "" {
		return none
	}

	return value
}

// Until formats a time in the future as "in 3d", and one in the past as "3d ago".
func Until(moment *metav1.Time, now time.Time) string {
	if moment.IsZero() {
		return none
	}

	if left := moment.Sub(now); left > 0 {
		return "in " + duration.HumanDuration(left)
	}

	return duration.HumanDuration(now.Sub(moment.Time)) + " ago"
}

// Since formats how long ago a time was, as the column AGE does.
func Since(moment *metav1.Time, now time.Time) string {
	if moment.IsZero() {
		return none
	}

	return duration.HumanDuration(now.Sub(moment.Time))
}
