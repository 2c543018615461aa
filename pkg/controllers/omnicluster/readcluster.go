package omnicluster

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// readCluster reads the cluster from the local copy, once the copy shows our own last writes.
func (r *reconciler) readCluster(ctx context.Context, s *scope) (loop.Outcome, error) {
	if err := r.catchUp(ctx, s); err != nil {
		if errors.Is(err, omni.ErrBehind) || errors.Is(err, omni.ErrNotSynced) {
			s.behind = errors.Is(err, omni.ErrBehind)

			return loop.Wait(time.Second, v1alpha1.ReasonMirrorNotSynced, "%s", omni.Message(err)), nil
		}

		return loop.Outcome{}, err
	}

	live, err := omni.Inspect(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	s.seen = &seen{live: live, ownerGone: r.isOwnerGone(ctx, s, live)}
	s.seen.adopting = claimOf(s).IsAdopting(s.cluster.Status.Adopting)

	return loop.Continue(v1alpha1.ReasonConnected, "OmniConnection %q is connected to %s", s.connection.Name, s.connection.Spec.Endpoint), nil
}

// isOwnerGone reports whether the object whose mark the cluster carries no longer exists. An object that this
// controller cannot read, such as one of another management cluster or of an unwatched namespace, counts as existing.
func (r *reconciler) isOwnerGone(ctx context.Context, s *scope, live omni.Live) bool {
	marks := live.Marks
	if !live.Exists || marks.UID == "" || s.owns(live) || !s.hubs.Ours(marks.Hub) || marks.ManagementCluster != r.options.ManagementCluster {
		return false
	}

	other := &v1alpha1.OmniCluster{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: marks.Namespace, Name: marks.Name}, other)
	if err != nil {
		return apierrors.IsNotFound(err)
	}

	return string(other.UID) != marks.UID
}

// catchUp waits a moment for the local copy to show our own last writes. Otherwise each write would cause a run with
// nothing to do yet.
func (r *reconciler) catchUp(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()

	for {
		err := s.lease.Ready(s.name)
		if !errors.Is(err, omni.ErrBehind) {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(catchUpPoll):
		}
	}
}
