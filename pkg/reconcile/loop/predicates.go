package loop

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OnlyDeletions accepts only that an object is gone, which frees what it had for others that claim the same.
func OnlyDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Holds accepts objects with a finalizer in the namespace that is served; empty: in all. The cache of Secrets also has the
// namespaces to which exports write, and there is no cache of the objects there: what holds a Secret is not known.
func Holds(namespace, finalizer string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		return (namespace == "" || object.GetNamespace() == namespace) && controllerutil.ContainsFinalizer(object, finalizer)
	})
}

// statusEcho is how long after a change of only its status an object is reconciled. Its controller is the only writer of the
// status, so the change is nearly always its own. If it reconciled at once, each write would cause the next one while what is told
// changes each time, as with what Omni does, or what a gateway before it says. A status that somebody else overwrote is corrected
// after this time.
const statusEcho = time.Second

// For makes a controller reconcile the objects of a kind: at once after every change, but a second after one of only the status.
func For(controller *builder.Builder, kind client.Object) *builder.Builder {
	return controller.
		For(kind, builder.WithPredicates(moreThanStatus())).
		Watches(kind, after(statusEcho), builder.WithPredicates(statusOnly()))
}

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

// moreThanStatus accepts every change except those of only the status.
func moreThanStatus() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !sameVersion(e) && !onlyStatusChanged(e) }}
}

// statusOnly accepts the changes of only the status.
func statusOnly() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !sameVersion(e) && onlyStatusChanged(e) },
	}
}

// after enqueues an updated object after a pause.
func after(pause time.Duration) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, pause)
		},
	}
}
