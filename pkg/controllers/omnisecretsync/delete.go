package omnisecretsync

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/workload"
)

// delete removes what was written, as far as the policy and the cluster allow.
func (r *reconciler) delete(ctx context.Context, s *scope) (loop.Outcome, error) {
	written := writtenPlace(s.sync)

	if written == (place{}) {
		return loop.Continue(v1alpha1.ReasonDeleting, "nothing was written"), nil
	}

	if s.sync.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		r.left(s, written, "spec.deletionPolicy is Orphan")

		return loop.Continue(v1alpha1.ReasonDeleting, "the Secret stays"), nil
	}

	parting, outcome, err := r.options.Door.Leave(ctx, workload.GuestOf(s.sync), r.options.Now())
	if err != nil || !outcome.Continues() {
		return outcome, err
	}

	if parting.Part == workload.PartLetGo {
		r.left(s, written, parting.Why)

		return outcome, nil
	}

	return r.cleanUp(ctx, s, parting.Opened.Cluster)
}

// cleanUp removes the Secrets where one may be: a crash may have come between a
// changed place and the status that says so.
func (r *reconciler) cleanUp(ctx context.Context, s *scope, cluster *workload.Cluster) (loop.Outcome, error) {
	places := []place{writtenPlace(s.sync), wantedPlace(s.sync)}

	for _, where := range slices.Compact(places) {
		kept, err := r.remove(ctx, s, cluster, where)

		if err != nil {
			// The answer that the cluster is there is out of date: the next look asks again.
			if workload.Unreachable(err) {
				cluster.Doubt()
			}

			part, why := workload.Farewell{
				Problem: fmt.Sprintf("remove Secret %s: %s", where, cluster.Message(err)),
				Since:   s.sync.DeletionTimestamp.Time, Now: r.options.Now(),
			}.Decide()

			if part != workload.PartLetGo {
				return loop.Block(retryPause, workload.Reason(err), "%s", why), nil
			}

			kept = why
		}

		if kept != "" && where == writtenPlace(s.sync) {
			r.left(s, where, kept)
		}
	}

	return loop.Continue(v1alpha1.ReasonDeleting, "done"), nil
}

// remove deletes one Secret if it is ours. kept says why one stays; it is empty if
// none is there any more.
func (r *reconciler) remove(ctx context.Context, s *scope, cluster *workload.Cluster, where place) (kept string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	secrets := cluster.Core().Secrets(where.namespace)

	live, err := secrets.Get(ctx, where.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("read Secret %s: %w", where, err)
	}

	if !ours(live, string(s.sync.UID)) {
		return "it does not carry this object's mark", nil
	}

	if err := secrets.Delete(ctx, where.name, exactly(live)); err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("delete Secret %s: %w", where, err)
	}

	r.events.Eventf(s.sync, nil, corev1.EventTypeNormal, "Deleted", "Delete", "Deleted Secret %s in the workload cluster", where)

	return "", nil
}

// left tells what stays behind in the workload cluster, if anything can be there.
func (r *reconciler) left(s *scope, where place, why string) {
	what := "stays"

	// The place is noted before the first write; without a hash no write was confirmed.
	if s.sync.Status.Target.Hash == "" {
		synced := apimeta.FindStatusCondition(s.sync.Status.Conditions, v1alpha1.ConditionSynced)
		if synced != nil && synced.Reason == v1alpha1.ReasonForeignTarget {
			return // what is there is somebody else's
		}

		what = "may be left, its first write was not confirmed, and stays"
	}

	r.events.Eventf(s.sync, nil, corev1.EventTypeWarning, "LeftBehind", "Delete",
		"Secret %s %s in the workload cluster of OmniCluster %q: %s", where, what, s.sync.Spec.ClusterRef.Name, why)
}
