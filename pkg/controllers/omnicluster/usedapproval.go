package omnicluster

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// usedApproval is the approval that was used last, until the status of the cluster has it.
type usedApproval struct {
	uid  types.UID // of the cluster
	hash string
}

// usedApproval returns what status.usedApproval becomes. Only the run that begins an approved change knows that its
// approval is used, if the change is over at once. If somebody changes the object meanwhile, the status of that run is
// not stored: the next run stores it.
func (r *reconciler) usedApproval(cluster *v1alpha1.OmniCluster, decided string) string {
	name, stored := client.ObjectKeyFromObject(cluster), cluster.Status.UsedApproval
	kept := r.used.of(name)

	switch {
	case decided != stored:
		r.used.keep(name, usedApproval{cluster.UID, decided})

		return decided
	case kept.uid == cluster.UID && kept.hash != stored:
		return kept.hash
	default:
		r.used.forget(name)

		return stored
	}
}
