package omnicluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
)

// nextRecord returns the record after a run. Besides by what the run created, the record grows only by what the API server, read
// without any cache, still has in the object and its documents. After a restore of the API's storage, the caches start again at different
// times, and a document that is gone must not make the destruction of its set look wanted. Whatever made the lists
// differ triggers the object again.
func (r *reconciler) nextRecord(ctx context.Context, s *scope) consent.Record {
	follows := s.synced.Follows()

	workers := workersOfSets(s)

	next := s.synced.NextRecord(follows).WithWorkers(workers)
	if !follows || !s.synced.Grows(next) {
		return next
	}

	current, err := r.specIsCurrent(ctx, s.cluster)
	if err == nil && current {
		current, err = r.documentsAreCurrent(ctx, s)
	}

	if err != nil || !current {
		return s.synced.NextRecord(false).WithWorkers(workers)
	}

	return next
}

// workersOfSets returns the names of the OmniWorkers by the ID of the machine set that each asks for.
func workersOfSets(s *scope) map[string]string {
	names := map[string]string{}

	for _, part := range partsOf(s) {
		if part.kind == "OmniWorkers" {
			names[part.set] = part.document.GetName()
		}
	}

	return names
}

// movedSets returns the recorded machine sets that no document of the cluster asks for any more, and whose OmniWorkers exists and
// names another OmniCluster: its name by the set's ID. The API server refuses such an edit of an object that a cluster counts. Whoever forces it
// (Flux, kubectl) deletes the object and makes it again, and an edit may come before the status says who counts it.
func movedSets(ctx context.Context, reader client.Reader, s *scope) (map[string]string, error) {
	moved, asked := map[string]string{}, workersOfSets(s)

	for _, set := range s.cluster.Status.AppliedMachineSets {
		if set.OmniWorkers == "" || asked[set.ID] != "" {
			continue
		}

		workers := &v1alpha1.OmniWorkers{}

		err := reader.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: set.OmniWorkers}, workers)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read OmniWorkers %q: %w", set.OmniWorkers, err)
		}

		if cluster := workers.Spec.ClusterRef.Name; err == nil && workers.DeletionTimestamp.IsZero() && cluster != s.cluster.Name {
			moved[set.ID] = cluster
		}
	}

	return moved, nil
}
