package omnicluster

import (
	"context"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
)

// nextRecord returns the record after a run. Besides by what the run created, the record grows only by what the API server, read
// without any cache, still has in the object and its documents. After a restore of the API's storage, the caches start again at different
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
