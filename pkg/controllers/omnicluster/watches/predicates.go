package watches

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// statusEcho is how long after a change of only its status an object is reconciled. This controller is the only writer
// of the status, so the change is nearly always its own. If it reconciled at once, each write would cause the next one
// while Omni changes often. A status that somebody else overwrote is corrected after this time.
const statusEcho = time.Second

// onlyStatusChanged reports whether an update left everything but the status as it was. The generation covers the spec
// and the start of a deletion.
func onlyStatusChanged(e event.UpdateEvent) bool {
	if e.ObjectOld == nil || e.ObjectNew == nil {
		return false
	}

	before, after := e.ObjectOld, e.ObjectNew

	return before.GetUID() == after.GetUID() &&
		before.GetGeneration() == after.GetGeneration() &&
		before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) &&
		apiequality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) &&
		apiequality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) &&
		apiequality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers())
}

func sameVersion(e event.UpdateEvent) bool {
	return e.ObjectOld != nil && e.ObjectNew != nil && e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
}

// MoreThanStatus accepts every change except those of only the status.
func MoreThanStatus() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !sameVersion(e) && !onlyStatusChanged(e) }}
}

// StatusOnly accepts the changes of only the status.
func StatusOnly() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !sameVersion(e) && onlyStatusChanged(e) },
	}
}

// EnqueueStatusEcho enqueues an object a second after an update, for what StatusOnly accepts.
func EnqueueStatusEcho() handler.EventHandler { return later(statusEcho) }

// later enqueues an updated object after a pause.
func later(pause time.Duration) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, pause)
		},
	}
}

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
