package omnihelmrelease

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// findUnrecorded looks, for a deletion, where the spec wants the release, and records one that bears this object's mark. The
// status records a release before the first action begins, so there is one only if the status was lost: it was wiped, or
// the API's storage was restored from before. What cannot be read is told of and not waited for.
func (r *reconciler) findUnrecorded(ctx context.Context, s *scope) (found bool, err error) {
	release := s.release
	s.engine = r.engine(s.opened, release.Namespace, release.EffectiveReleaseName(), release.Spec.Namespace)

	observed, err := observe(ctx, s)
	if err != nil && ctx.Err() != nil { // a process that stops has learned nothing of the cluster
		return false, fmt.Errorf("read release %s: %w", fullName(release), ctx.Err())
	}

	if err != nil {
		r.mayBeLeft(s, r.explainCluster(s, err).Message())

		return false, nil
	}

	if observed.Latest() == nil || marked(observed).Owner != string(release.UID) {
		return false, nil
	}

	s.seen = true
	release.Status.ReleaseName, release.Status.Namespace = release.EffectiveReleaseName(), release.Spec.Namespace

	return true, nil
}

// mayBeLeft announces that nobody looked whether there is a release that the status does not record.
func (r *reconciler) mayBeLeft(s *scope, why string) {
	r.events.Eventf(s.release, nil, corev1.EventTypeWarning, "LeftBehind", "Delete",
		"Helm release %s may be left in the workload cluster of OmniCluster %q: the status records no release, and the cluster could not be looked at: %s",
		fullName(s.release), s.release.Spec.ClusterRef.Name, why)
}
