package clusteraccess

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ParentChanged lets through updates of an OmniCluster that change what the access
// goes by: its spec, a deletion, status.omniClusterID, whether it is another hub's,
// and that Omni destroys the cluster. The objects in its cluster have to look again.
func ParentChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, standingChanged())
}

// standingChanged is ParentChanged for the status.
func standingChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*v1alpha1.OmniCluster)
		after, stillCluster := e.ObjectNew.(*v1alpha1.OmniCluster)

		return isCluster && stillCluster &&
			(before.Status.OmniClusterID != after.Status.OmniClusterID || destroying(before) != destroying(after) || ofOtherHub(before) != ofOtherHub(after))
	}}
}
