package loop

import (
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

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
