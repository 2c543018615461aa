package omnicluster

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// statusEcho is how long after a change of nothing but the status an object is
// looked at. We are its only writer, so the change is nearly always our own;
// looked at at once, a storm in Omni would make each write cause the next one.
// Somebody who overwrites a status is corrected after this time.
const statusEcho = time.Second

// onlyStatusChanged reports whether an update left everything but the status as
// it was. The generation stands for the spec and for the begin of a deletion.
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

// moreThanStatus lets through every change but those of the status alone.
func moreThanStatus() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !sameVersion(e) && !onlyStatusChanged(e) }}
}

// statusOnly lets through the changes of the status alone.
func statusOnly() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !sameVersion(e) && onlyStatusChanged(e) },
	}
}

// later looks at an updated object after a pause.
func later(pause time.Duration) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, pause)
		},
	}
}

// onlyGoing lets through what frees a cluster's name.
func onlyGoing() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
