package omnicluster

import (
	"context"
	"crypto/sha256"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
)

// planVerbosity is the verbosity at which plans are logged in full.
const planVerbosity = 2

// digest stands for a plan that was logged.
type digest [sha256.Size]byte

// logPlan logs a plan in full, with the hash that approves it: once in each process until the plan changes, and when
// some of it is applied. The status may have only a part of it, and the log of an earlier process may be gone, so what
// the status has says nothing about what can be read.
func (r *reconciler) logPlan(ctx context.Context, s *scope) {
	logger := log.FromContext(ctx).V(planVerbosity)
	if !logger.Enabled() {
		return
	}

	state := r.processStates.of(s.cluster)
	if s.plan.Empty() {
		state.logged = digest{}

		return
	}

	hash, full := s.synced.Hash(), s.plan.Diff(slices.Concat(s.plan.Changes, s.plan.WaitingForOmni))

	now := digest(sha256.Sum256([]byte(hash + "\n" + full)))
	if now == state.logged && !s.wrote() {
		return
	}

	state.logged = now
	logger.Info("plan", "changes", consent.Summary(s.plan), "hash", hash, "diff", full)
}
