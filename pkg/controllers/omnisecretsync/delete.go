package omnisecretsync

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// orphaned is why a Secret stays that the spec wants to stay.
const orphaned = "spec.deletionPolicy is Orphan"

// delete removes the written Secrets, as far as the policy and the cluster allow.
func (r *reconciler) delete(ctx context.Context, s *scope) (loop.Outcome, error) {
	if s.sync.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		r.announceAllLeft(s, orphaned)

		return loop.Continue(v1alpha1.ReasonDeleting, "the Secret stays"), nil
	}

	requester := clusteraccess.RequesterOf(s.sync, r.wake)
	requester.Unrecorded = len(knownLocations(s.sync)) == 0

	cleanup, outcome, err := r.options.Access.PlanCleanup(ctx, requester, r.options.Now())
	if err != nil || !outcome.Continues() {
		return outcome, err
	}

	if cleanup.Action == clusteraccess.ActionLetGo {
		if requester.Unrecorded && !cleanup.NothingLeft {
			r.mayBeLeft(s, cleanup.Why)
		}

		r.announceAllLeft(s, cleanup.Why)

		return outcome, nil
	}

	s.opened = cleanup.Opened

	if requester.Unrecorded {
		if err := r.findUnrecorded(ctx, s); err != nil {
			return loop.Outcome{}, err
		}
	}

	return r.cleanUp(ctx, s, s.opened.Cluster)
}

// cleanUp removes the Secrets at every location where one may be. One that cannot be removed does not hold back the others.
func (r *reconciler) cleanUp(ctx context.Context, s *scope, cluster *clusteraccess.Cluster) (loop.Outcome, error) {
	outcome := loop.Continue(v1alpha1.ReasonDeleting, "done")

	for _, where := range knownLocations(s.sync) {
		kept, err := r.remove(ctx, s, cluster, where)
		if err == nil {
			if kept != "" && (where == writtenLocation(s.sync) || confirmed(s.sync, where)) {
				r.announceLeft(s, where, kept)
			}

			continue
		}

		switch action, why := r.giveUp(s, cluster, where, err); {
		case action == clusteraccess.ActionLetGo:
			r.announceLeft(s, where, why)
		case clusteraccess.Unreachable(err): // nor is any other
			return loop.Block(clusterPause, clusteraccess.Reason(err), "%s", why), nil
		case outcome.Continues():
			outcome = loop.Block(clusterPause, clusteraccess.Reason(err), "%s", why)
		}
	}

	return outcome, nil
}

// giveUp decides what to do about a Secret that could not be removed.
func (r *reconciler) giveUp(s *scope, cluster *clusteraccess.Cluster, where location, err error) (clusteraccess.Action, string) {
	// The earlier result that the cluster is reachable is out of date: the next run checks again.
	if clusteraccess.Unreachable(err) {
		cluster.Invalidate()
	}

	problem := fmt.Sprintf("remove Secret %s: %s", where, cluster.Message(err))

	// Most likely nothing could be written there either.
	if apierrors.IsForbidden(err) && !confirmed(s.sync, where) {
		return clusteraccess.ActionLetGo, problem
	}

	return r.options.Access.GiveUp(s.sync, problem, time.Time{}, r.options.Now())
}

// remove deletes one Secret if it is ours. kept is why it stays; empty if it does not exist any more, or if an event
// was sent about it.
func (r *reconciler) remove(ctx context.Context, s *scope, cluster *clusteraccess.Cluster, where location) (kept string, err error) {
	ctx, cancel := context.WithTimeout(ctx, locationTimeout)
	defer cancel()

	live, err := read(ctx, cluster, where)
	if clusteraccess.NotFound(err) || apierrors.IsForbidden(err) && namespaceGone(ctx, cluster, where.namespace) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("read Secret %s: %w", where, err)
	}

	if !carriesMark(live, string(s.sync.UID)) {
		return "it does not carry this object's mark", nil
	}

	if hub := live.Labels[labelHub]; !s.opened.Hubs.Ours(hub) {
		r.events.Eventf(s.sync, nil, corev1.EventTypeWarning, "LeftBehind", "Delete", "Secret %s stays in the workload cluster of OmniCluster %q: %s",
			where, s.sync.Spec.ClusterRef.Name, s.opened.Hubs.Differ(hub))

		return "", nil
	}

	if err := deleteExactly(ctx, cluster, where, live); err != nil {
		// An admission webhook that refuses the deletion may quote the Secret.
		return "", fmt.Errorf("delete Secret %s: %w", where, content{data: live.Data}.secrets().Error(err))
	}

	stays := ""
	if s.sync.Spec.CreateNamespace {
		stays = fmt.Sprintf("; namespace %s stays, also if it was made for it", where.namespace)
	}

	r.events.Eventf(s.sync, nil, corev1.EventTypeNormal, "Deleted", "Delete", "Deleted Secret %s in the workload cluster%s", where, stays)

	return "", nil
}

// announceAllLeft is announceLeft for every location.
func (r *reconciler) announceAllLeft(s *scope, why string) {
	for _, where := range knownLocations(s.sync) {
		r.announceLeft(s, where, why)
	}
}

// announceLeft announces why a Secret stays in the workload cluster.
func (r *reconciler) announceLeft(s *scope, where location, why string) {
	r.announceLeftIn(s, where, fmt.Sprintf("in the workload cluster of OmniCluster %q: %s", s.sync.Spec.ClusterRef.Name, why))
}

// announceLeftIn announces a Secret that is left, if one may be there, with its cluster and the reason.
func (r *reconciler) announceLeftIn(s *scope, where location, inCluster string) {
	what := "stays"

	// The location is recorded before the first write.
	if !confirmed(s.sync, where) {
		synced := apimeta.FindStatusCondition(s.sync.Status.Conditions, v1alpha1.ConditionSynced)
		if synced != nil && synced.Reason == v1alpha1.ReasonForeignTarget && where == wantedLocation(s.sync) {
			return // what is there is somebody else's
		}

		what = "may be left, its first write was not confirmed, and stays"
	}

	r.events.Eventf(s.sync, nil, corev1.EventTypeWarning, "LeftBehind", "Delete", "Secret %s %s %s", where, what, inCluster)
}

// findUnrecorded looks, for a deletion, where the spec wants the Secret, and records one that bears this object's mark. The
// status records a location before the first write, so there is one only if the status was lost: it was wiped, or the
// API's storage was restored from before. What cannot be read is told of and not waited for.
func (r *reconciler) findUnrecorded(ctx context.Context, s *scope) error {
	where, cluster := wantedLocation(s.sync), s.opened.Cluster

	bounded, cancel := context.WithTimeout(ctx, locationTimeout)
	defer cancel()

	live, err := read(bounded, cluster, where)

	switch {
	case clusteraccess.NotFound(err):
	case err != nil && ctx.Err() != nil: // a process that stops has learned nothing of the cluster
		return fmt.Errorf("read Secret %s: %w", where, ctx.Err())
	case err != nil:
		if clusteraccess.Unreachable(err) {
			cluster.Invalidate()
		}

		r.mayBeLeft(s, cluster.Message(err))
	case carriesMark(live, string(s.sync.UID)):
		found := content{secretType: live.Type, data: live.Data, salt: string(s.sync.UID)}
		s.sync.Status.Target = &v1alpha1.SyncedSecret{
			Namespace: where.namespace, Name: where.name, Type: string(live.Type), Hash: found.hash(),
		}
	}

	return nil
}

// mayBeLeft announces that nobody looked whether there is a Secret that the status does not record.
func (r *reconciler) mayBeLeft(s *scope, why string) {
	r.events.Eventf(s.sync, nil, corev1.EventTypeWarning, "LeftBehind", "Delete",
		"Secret %s may be left in the workload cluster of OmniCluster %q: the status records no write, and the cluster could not be looked at: %s",
		wantedLocation(s.sync), s.sync.Spec.ClusterRef.Name, why)
}
