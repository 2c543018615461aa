package omnihelmrelease

import (
	"context"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// An action may wait for its turn for hours. What was wanted when it was decided may not be wanted any more then, so it
// is taken back as soon as a run sees that.

// takeBack takes an action back that waits for its turn and was decided from another spec. It comes before all other
// phases: what the new spec asks for may be impossible, but the former one does not count any more.
func (r *reconciler) takeBack(_ context.Context, s *scope) (loop.Outcome, error) {
	if s.last.running() && s.last.generation != s.release.Generation {
		r.runner.withdraw(s.release.UID)
	}

	return loop.Continue(v1alpha1.ReasonProgressing, ""), nil
}

// takeBackOther takes an action back that waits for its turn and was decided from another chart, other values or another
// kubeconfig, which change without the spec.
func (r *reconciler) takeBackOther(s *scope) {
	if attempt := wanted(s.release, s.last, s.resolved.ArchiveDigest, s.values.Digest()).Attempt; s.last.inputs != inputs(attempt, s.opened) {
		r.runner.withdraw(s.release.UID)
	}
}

// inputs returns a digest of what an action is decided from, beside the release that it finds.
func inputs(attempt string, opened *clusteraccess.Opened) string {
	return helm.Digest(attempt, opened.Kubeconfig)
}
