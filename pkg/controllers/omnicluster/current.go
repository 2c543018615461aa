package omnicluster

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// documentsAreCurrent lists the cluster's documents from the API server: a document that came back must not be
// destroyed because a watch has not delivered it yet.
func (r *reconciler) documentsAreCurrent(ctx context.Context, s *scope) (bool, error) {
	now, err := collect(ctx, r.live, s.cluster)
	if err != nil {
		return false, err
	}

	return maps.EqualFunc(versions(s.input), versions(now), sameDocument), nil
}

// versions returns the documents that count, by UID.
func versions(input template.Input) map[types.UID]metav1.Object {
	found := map[types.UID]metav1.Object{}

	for document := range input.All() {
		if document.GetDeletionTimestamp().IsZero() {
			found[document.GetUID()] = document
		}
	}

	return found
}

// sameDocument reports whether two states of a document say the same. After a restore of the API's storage, generations
// repeat with other content.
func sameDocument(a, b metav1.Object) bool {
	return a.GetGeneration() == b.GetGeneration() && equality.Semantic.DeepEqual(specOf(a), specOf(b))
}

func specOf(document metav1.Object) any {
	switch document := document.(type) {
	case *v1alpha1.OmniControlPlane:
		return document.Spec
	case *v1alpha1.OmniWorkers:
		return document.Spec
	case *v1alpha1.OmniMachine:
		return document.Spec
	default:
		return nil
	}
}

// specIsCurrent reads the object from the API server: what the run records as wanted must be in the spec that the API
// server has.
func (r *reconciler) specIsCurrent(ctx context.Context, cluster *v1alpha1.OmniCluster) (bool, error) {
	now, err := r.readAgain(ctx, cluster)

	return now != nil, err
}

// isCurrent reads the object from the API server, because nothing may be destroyed on the evidence of a cache.
func (r *reconciler) isCurrent(ctx context.Context, cluster *v1alpha1.OmniCluster) (bool, error) {
	now, err := r.readAgain(ctx, cluster)

	return now != nil && consent.AllowSame(now.Status, cluster.Status), err
}

// readAgain returns the object as the API server has it; nil if it wants something else there, or is gone. Generations
// alone do not tell: they repeat after a restore of the API's storage.
func (r *reconciler) readAgain(ctx context.Context, cluster *v1alpha1.OmniCluster) (*v1alpha1.OmniCluster, error) {
	now := &v1alpha1.OmniCluster{}

	err := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), now)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, fmt.Errorf("read the object again: %w", err)
	case now.UID != cluster.UID, now.Generation != cluster.Generation, now.DeletionTimestamp.IsZero() != cluster.DeletionTimestamp.IsZero(),
		!equality.Semantic.DeepEqual(now.Spec, cluster.Spec):
		return nil, nil //nolint:nilnil // it wants something else
	default:
		return now, nil
	}
}
