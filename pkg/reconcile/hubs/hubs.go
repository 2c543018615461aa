// Package hubs decides whose marks of ownership count as this hub's own. A mark has the ID of the hub that wrote it,
// because objects that are restored into a second hub keep their UIDs.
//
// Owners and Well keep what this process itself has seen of clusters in Omni, for controllers that otherwise know only their
// statuses. A status may be from before the process began: the controller was away, or an older database was restored.
package hubs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Hubs are the hubs whose marks count as ours. The UID in the mark must also be the UID of our object.
type Hubs struct {
	// Own is the ID of this hub.
	Own string
	// Previous is the ID of a hub that is gone and whose objects were restored here; empty if there is none.
	Previous string
}

// Of returns the hubs for an object, which may be a nil interface: its annotation can name a previous hub. Naming this
// hub itself has no effect: the same files can be applied to both hubs, and a hub that was taken over must not take
// back.
func Of(own string, object metav1.Object) Hubs {
	hubs := Hubs{Own: own}

	if object != nil {
		if previous := object.GetAnnotations()[v1alpha1.AnnotationPreviousHub]; previous != own {
			hubs.Previous = previous
		}
	}

	return hubs
}

// OfCluster is Of for what is reached through an OmniCluster: the annotation is on its OmniConnection. A connection
// that does not exist names no previous hub.
func OfCluster(ctx context.Context, reader client.Reader, own string, cluster *v1alpha1.OmniCluster) (Hubs, error) {
	connection := &v1alpha1.OmniConnection{}
	name := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ConnectionRef.Name}

	if err := reader.Get(ctx, name, connection); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return Hubs{Own: own}, nil
		}

		return Hubs{}, fmt.Errorf("read OmniConnection %q: %w", name.Name, err)
	}

	return Of(own, connection), nil
}

// Ours reports whether a mark with the ID of that hub counts as ours. A mark without an ID is from before marks had
// one.
func (h Hubs) Ours(marked string) bool {
	return marked == "" || marked == h.Own || h.IsPrevious(marked)
}

// IsPrevious reports whether a mark is of the previous hub, so that it has to be rewritten.
func (h Hubs) IsPrevious(marked string) bool { return marked != "" && marked == h.Previous }

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
