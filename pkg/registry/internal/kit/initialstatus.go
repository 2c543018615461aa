package kit

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// pendingMessage is the message of a new object's condition until a controller has processed the object.
const pendingMessage = "no controller has looked at this object yet"

// setInitialStatus writes the status of a new object, so that no reader takes the object for a finished one: tools
// that know kstatus wait while Reconciling is True or observedGeneration lags behind. Other conditions stay.
func setInitialStatus(status *v1alpha1.ReconcileStatus, now metav1.Time) {
	status.ObservedGeneration = -1

	for _, first := range []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown},
		{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue},
	} {
		first.Reason, first.Message, first.LastTransitionTime = v1alpha1.ReasonPending, pendingMessage, now
		meta.SetStatusCondition(&status.Conditions, first)
	}
}
