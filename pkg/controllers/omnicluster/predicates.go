package omnicluster

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// ConnectionChanged is a predicate for updates of an OmniConnection that concern its clusters: its spec, a deletion, a previous hub,
// and what its condition Ready says in a word. Its message may change with each try to connect, and with each cluster that goes.
func ConnectionChanged() predicate.Predicate {
	ready := func(object client.Object) metav1.Condition {
		connection, ok := object.(*v1alpha1.OmniConnection)
		if !ok {
			return metav1.Condition{}
		}

		found := apimeta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
		if found == nil {
			return metav1.Condition{}
		}

		return metav1.Condition{Status: found.Status, Reason: found.Reason}
	}

	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			hubs.PreviousChanged().Update(e) || ready(e.ObjectOld) != ready(e.ObjectNew)
	}}
}
