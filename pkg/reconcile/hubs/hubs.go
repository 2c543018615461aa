// Package hubs decides whose marks of ownership count as this hub's own. A mark has the ID of the hub that wrote it,
// because objects that are restored into a second hub keep their UIDs.
package hubs

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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
