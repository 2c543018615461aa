package omnicluster

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
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

	return maps.Equal(versions(s.input), versions(now)), nil
}

// versions returns the documents that count, by UID, with their generations.
func versions(input template.Input) map[types.UID]int64 {
	found := map[types.UID]int64{}

	for document := range input.All() {
		if document.GetDeletionTimestamp().IsZero() {
			found[document.GetUID()] = document.GetGeneration()
		}
	}

	return found
}

// specIsCurrent reads the object from the API server: what the run records as wanted must be in the spec that the API
// server has.
func (r *reconciler) specIsCurrent(ctx context.Context, cluster *v1alpha1.OmniCluster) (bool, error) {
	now := &v1alpha1.OmniCluster{}

	err := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), now)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read the object again: %w", err)
	}

	return err == nil && now.UID == cluster.UID && now.Generation == cluster.Generation && equality.Semantic.DeepEqual(now.Spec, cluster.Spec), nil
}

// isCurrent reads the object from the API server, because nothing may be destroyed on the evidence of a cache.
func (r *reconciler) isCurrent(ctx context.Context, cluster *v1alpha1.OmniCluster) (bool, error) {
	now := &v1alpha1.OmniCluster{}

	err := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), now)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read the object again: %w", err)
	}

	return err == nil && now.UID == cluster.UID && now.Generation == cluster.Generation && consent.AllowSame(now.Status, cluster.Status), nil
}

// nextRecord returns the record after a run. The record grows only by what the API server, read without any cache,
// still has in the object and its documents. After a restore of the API's storage, the caches start again at different
// times, and a document that is gone must not make the destruction of its set look wanted. Whatever made the lists
// differ triggers the object again.
func (r *reconciler) nextRecord(ctx context.Context, s *scope) consent.Record {
	follows := s.synced.Follows()

	next := s.synced.NextRecord(follows)
	if !follows || !s.synced.Grows(next) {
		return next
	}

	current, err := r.specIsCurrent(ctx, s.cluster)
	if err == nil && current {
		current, err = r.documentsAreCurrent(ctx, s)
	}

	if err != nil || !current {
		return s.synced.NextRecord(false)
	}

	return next
}
