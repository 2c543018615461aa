package hubs

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Differ returns the message that a mark is another hub's.
func (h Hubs) Differ(marked string) string {
	return fmt.Sprintf("it carries the mark of this object in another hub, %s (this hub is %s)", redact.Line(marked), h.Own)
}

// Advice returns what to do about something that carries another hub's mark. what is the word for it, and place is the
// object that can name a previous hub, such as: OmniConnection "omni".
func Advice(marked, what, place string) string {
	return fmt.Sprintf("If that hub is gone for good, set the annotation %s: %s on %s, and this hub takes over. If it runs, delete this object here: the %s stays",
		v1alpha1.AnnotationPreviousHub, redact.Line(marked), place, what)
}

// Marked announces that the mark on something names this hub now; former is the hub that it named before, if it did.
func Marked(recorder events.EventRecorder, object client.Object, what, former string) {
	if former == "" {
		recorder.Eventf(object, nil, corev1.EventTypeNormal, "MarkCompleted", "Mark", "The mark on %s names this hub now", what)

		return
	}

	recorder.Eventf(object, nil, corev1.EventTypeNormal, "TakenOver", "Mark", "Took %s over from hub %s, as the annotation %s says",
		what, redact.Line(former), v1alpha1.AnnotationPreviousHub)
}

// PreviousChanged accepts changes of the annotation of an OmniConnection that names a previous hub.
func PreviousChanged() predicate.Predicate {
	named := func(object client.Object) string { return object.GetAnnotations()[v1alpha1.AnnotationPreviousHub] }

	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return named(e.Object) != "" },
		UpdateFunc:  func(e event.UpdateEvent) bool { return named(e.ObjectOld) != named(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
