package omnicluster

import "omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"

// usedApproval returns what status.usedApproval becomes. Only the run that begins an approved change knows that its
// approval is used, if the change is over at once. If somebody changes the object meanwhile, the status of that run is
// not stored: the next run stores it.
func (r *reconciler) usedApproval(cluster *v1alpha1.OmniCluster, decided string) string {
	state, stored := r.processStates.of(cluster), cluster.Status.UsedApproval

	switch {
	case decided != stored:
		state.used = &decided

		return decided
	case state.used != nil && *state.used != stored:
		return *state.used
	default:
		state.used = nil

		return stored
	}
}
