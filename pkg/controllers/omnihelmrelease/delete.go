package omnihelmrelease

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// delete uninstalls the release, as far as the policy and the cluster allow.
func (r *reconciler) delete(ctx context.Context, s *scope) (loop.Outcome, error) {
	r.runner.limiter.Exit(keyOf(s.release).waiter()) // what it waited for is not wanted any more

	orphan := s.release.Spec.DeletionPolicy == v1alpha1.ReleaseOrphan

	if s.last.running() {
		return r.interruptUnwanted(ctx, s, orphan)
	}

	requester := clusteraccess.RequesterOf(s.release, r.wake)
	requester.Unrecorded = s.release.Status.ReleaseName == ""

	if orphan {
		if !requester.Unrecorded {
			r.left(s, "spec.deletionPolicy is Orphan")
		}

		return loop.Continue(v1alpha1.ReasonDeleting, "the release stays"), nil
	}

	cleanup, outcome, err := r.access.PlanCleanup(ctx, requester, r.options.Now())
	if err != nil || !outcome.Continues() {
		return outcome, err
	}

	if cleanup.Action == clusteraccess.ActionLetGo {
		if !requester.Unrecorded {
			r.left(s, cleanup.Why)
		} else if !cleanup.NothingLeft {
			r.mayBeLeft(s, cleanup.Why)
		}

		return outcome, nil
	}

	s.opened = cleanup.Opened

	if requester.Unrecorded {
		found, err := r.findUnrecorded(ctx, s)
		if err != nil {
			return loop.Outcome{}, err
		}

		if !found {
			return loop.Continue(v1alpha1.ReasonDeleting, "nothing was released"), nil
		}
	}

	s.engine = r.engine(s.opened, s.release.Namespace, s.release.Status.ReleaseName, s.release.Status.Namespace)

	return r.uninstall(ctx, s), nil
}

// interruptUnwanted ends a running action unless it is the uninstall, and the uninstall as well if it is no longer
// wanted or the cluster is being destroyed.
func (r *reconciler) interruptUnwanted(ctx context.Context, s *scope, orphan bool) (loop.Outcome, error) {
	destroying, err := r.access.Destroying(ctx, clusteraccess.RequesterOf(s.release, r.wake))
	if err != nil {
		return loop.Outcome{}, err
	}

	if orphan || destroying || s.last.action != helm.ActionUninstall {
		r.runner.interrupt(s.release.UID)
	}

	return underWay(s.release, s.last), nil
}

// uninstall reads the release and begins to uninstall it.
func (r *reconciler) uninstall(ctx context.Context, s *scope) loop.Outcome {
	observed, err := observe(ctx, s)
	if err != nil {
		explained := r.explainCluster(s, err)

		return r.holdUp(s, explained.Reason(), explained.Message())
	}

	s.seen = observed.Latest() != nil
	owner, hub := marked(observed).Owner, marked(observed).Hub

	switch {
	case !s.seen:
		return loop.Continue(v1alpha1.ReasonDeleting, "the release is gone")
	case owner == "" && s.release.Status.Revision > 0:
		r.left(s, unmarked)

		return loop.Continue(v1alpha1.ReasonDeleting, "the release does not bear this object's mark any more")
	case owner != string(s.release.UID):
		r.left(s, "it is not this object's")

		return loop.Continue(v1alpha1.ReasonDeleting, "the release is not this object's")
	case !s.opened.Hubs.Ours(hub):
		r.left(s, s.opened.Hubs.Differ(hub))

		return loop.Continue(v1alpha1.ReasonDeleting, "the release is another hub's")
	}

	// What the former hub may be at work on gets its time. A mark without a hub needs none: the record is about to go.
	if hub != "" {
		if outcome := r.mark(ctx, s, observed); !outcome.Continues() {
			return r.holdUp(s, outcome.Reason(), outcome.Message())
		}
	}

	s.observed = &observed
	s.want = helm.Wanted{Absent: true, Owner: string(s.release.UID), Hub: r.options.HubID, Process: r.process, LockTime: settings(s.release).Timeout, Attempt: "uninstall"}
	s.decision = helm.Decide(s.want, observed, r.lockClock())

	if s.decision.Action == helm.ActionWait {
		return r.holdUp(s, v1alpha1.ReasonLocked, s.decision.Why)
	}

	// A failed uninstall is tried again after a pause, and given up when this has lasted too long.
	if at := notBefore(s.release, s.last, s.decision, r.options.Now()); !at.IsZero() {
		outcome := r.holdUp(s, failureReason(s.last.err), s.last.err.Error())
		if outcome.Continues() || at.After(r.options.Now()) {
			return outcome
		}
	}

	return r.begin(s, helm.ActionUninstall, r.action(s))
}

// holdUp keeps the deletion waiting, and releases the object when that has lasted too long.
func (r *reconciler) holdUp(s *scope, reason, problem string) loop.Outcome {
	// A failed attempt may itself have taken an hour.
	var tried time.Time
	if s.last.failed() && s.last.action == helm.ActionUninstall {
		tried = s.last.firstBegun
	}

	action, why := r.access.GiveUp(s.release, problem, tried, r.options.Now())
	if action == clusteraccess.ActionLetGo {
		r.left(s, why)

		return loop.Continue(v1alpha1.ReasonDeleting, "%s", why)
	}

	return loop.Block(clusterPause, reason, "%s", why)
}

// left announces why the release stays in the workload cluster.
func (r *reconciler) left(s *scope, why string) {
	r.stays(s, fmt.Sprintf("in the workload cluster of OmniCluster %q: %s", s.release.Spec.ClusterRef.Name, why))
}

// stays announces a release that is left, with its cluster and the reason. The status names a release before its first
// action, so there need not be one.
func (r *reconciler) stays(s *scope, inCluster string) {
	stays := "stays"
	if s.release.Status.Revision == 0 && !s.last.changing && !s.seen {
		stays = "may be left (its first action was about to begin)"
	}

	r.events.Eventf(s.release, nil, corev1.EventTypeWarning, "LeftBehind", "Delete",
		"Helm release %s/%s %s %s", s.release.Status.Namespace, s.release.Status.ReleaseName, stays, inCluster)
}

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
