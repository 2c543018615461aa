package loop

import (
	"context"
	"strconv"
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

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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

// RequestedAt returns the request to reconcile that an object carries in one of its annotations; empty if it carries none.
// With both annotations the later one counts, so that neither tool waits for the other.
func RequestedAt(object client.Object) string {
	ours, flux := object.GetAnnotations()[v1alpha1.AnnotationReconcileRequestedAt], object.GetAnnotations()[v1alpha1.AnnotationFluxRequestedAt]

	at, isTime := timeOf(ours)
	atOfFlux, isTimeOfFlux := timeOf(flux)

	switch {
	case ours == "" || flux == "":
		return ours + flux
	case isTime && isTimeOfFlux && atOfFlux.After(at):
		return flux
	case isTime && isTimeOfFlux:
		return ours
	default:
		return max(ours, flux)
	}
}

// IsAnswered reports whether the status of an object is about what it asks for now: its generation, and the last request.
func IsAnswered(object Object) bool {
	status := object.GetReconcileStatus()

	return status.ObservedGeneration == object.GetGeneration() && status.LastHandledReconcileAt == RequestedAt(object)
}

// Requests returns a text that changes with every request that an object carries, whichever annotation it is in.
func Requests(object client.Object) string {
	annotations := object.GetAnnotations()

	return annotations[v1alpha1.AnnotationReconcileRequestedAt] + " " + annotations[v1alpha1.AnnotationFluxRequestedAt]
}

// timeOf reads the time of a request. Flux's command and our plugin write RFC 3339, in any time zone; people write the seconds of
// date +%s.
func timeOf(request string) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339Nano, request); err == nil {
		return at, true
	}

	seconds, err := strconv.ParseInt(request, 10, 64)

	return time.Unix(seconds, 0), err == nil
}

// rewriteInterval is the shortest time between two writes of the same content.
const rewriteInterval = time.Minute

// RewritePause returns how long to wait before an object writes again what it wrote at a time and somebody changed since.
// Each write starts the next run, so that without the pause a writer who changes it back at once would make a loop. Whoever
// asks for a run gets the write at once.
func RewritePause(object Object, written, now time.Time) time.Duration {
	if object.GetReconcileStatus().LastHandledReconcileAt != RequestedAt(object) {
		return 0
	}

	// A write in the future is one by a clock that was ahead.
	if ago := now.Sub(written); ago >= 0 {
		return max(0, rewriteInterval-ago)
	}

	return 0
}
