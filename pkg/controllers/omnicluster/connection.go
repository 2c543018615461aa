package omnicluster

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// notConnected says why a connection cannot be used, in the words of its own
// condition, so that nobody has to look there first. The message of a condition
// holds no secrets.
func notConnected(connection *v1alpha1.OmniConnection) string {
	text := fmt.Sprintf("OmniConnection %q is not connected to Omni", connection.Name)

	ready := apimeta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == "" {
		return text + "; see its conditions"
	}

	return text + ": " + ready.Reason + ": " + ready.Message
}
