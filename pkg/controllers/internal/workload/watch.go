package workload

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ClusterIDChanged lets through updates of an OmniCluster that change
// status.omniClusterID: the objects in its cluster have to look again.
func ClusterIDChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*v1alpha1.OmniCluster)
		after, stillCluster := e.ObjectNew.(*v1alpha1.OmniCluster)

		return isCluster && stillCluster && before.Status.OmniClusterID != after.Status.OmniClusterID
	}}
}
