package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
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

	owner, err := r.ownerState(ctx, s, live)
	if err != nil {
		return loop.Outcome{}, err
	}

	s.seen = &seen{live: live, owner: owner}
	s.seen.adopting = claimOf(s).IsAdopting(s.cluster.Status.Adopting)

	return loop.Continue(v1alpha1.ReasonConnected, "OmniConnection %q is connected to %s", s.connection.Name, s.connection.Spec.Endpoint), nil
}

// ownerState reports whether the object whose mark the cluster carries exists in this management cluster. A cluster is taken
// over on no evidence of a cache, which lacks what is new and namespaces that are not watched.
func (r *reconciler) ownerState(ctx context.Context, s *scope, live omni.Live) (consent.OwnerState, error) {
	marks := live.Marks // foreign text
	isName := len(validation.IsDNS1123Label(marks.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(marks.Name)) == 0

	if !live.Exists || marks.UID == "" || s.owns(live) || !s.hubs.Ours(marks.Hub) || !isName {
		return consent.OwnerUnknown, nil
	}

	state, err := readOwner(ctx, r.client, s, live)
	if err == nil && state != consent.OwnerGone {
		return state, nil
	}

	if !s.cluster.Spec.Adopt {
		return state, nil // for a message only
	}

	if state, err = readOwner(ctx, r.live, s, live); err != nil && !apierrors.IsForbidden(err) {
		return consent.OwnerUnknown, fmt.Errorf("read OmniCluster %s/%s, to which cluster %q in Omni belongs: %w", marks.Namespace, marks.Name, s.name, err)
	}

	return state, nil
}

// readOwner looks for the object that the cluster's mark names. One that was made anew under its name, for the same cluster, is to
// take that back: nobody else may, unless it has its cluster in another Omni. The name of the management cluster in the mark only
// informs.
func readOwner(ctx context.Context, reader client.Reader, s *scope, live omni.Live) (consent.OwnerState, error) {
	other, marks := &v1alpha1.OmniCluster{}, live.Marks
	key := client.ObjectKey{Namespace: marks.Namespace, Name: marks.Name}

	err := reader.Get(ctx, key, other)

	switch {
	case apierrors.IsNotFound(err):
		return consent.OwnerGone, nil
	case err != nil:
		return consent.OwnerUnknown, err
	case string(other.UID) == marks.UID:
		return consent.OwnerExists, nil
	case key == client.ObjectKeyFromObject(s.cluster) || other.EffectiveClusterName() != s.name,
		other.Status.OmniClusterID != "" && other.Status.OmniClusterID != live.UUID:
		return consent.OwnerGone, nil
	default:
		return consent.OwnerMadeAnew, nil
	}
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
