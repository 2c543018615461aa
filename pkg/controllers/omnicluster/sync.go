package omnicluster

import (
	"context"
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// sync makes the changes of the plan that may be made now.
func (r *reconciler) sync(ctx context.Context, s *scope) (loop.Outcome, error) {
	decision, err := r.decide(ctx, s)
	if err != nil {
		return loop.Outcome{}, err
	}

	s.synced = &synced{Decision: decision}

	if decision.HasChangesToTry() {
		outcome, err := r.prepareWrite(ctx, s, decision)
		if err == nil && outcome.Continues() {
			outcome, err = r.apply(ctx, s)
		}

		if err != nil || !outcome.Continues() {
			return outcome.Within(s.synced.requeueAfter()), err
		}
	}

	outcome := r.whatIsLeft(ctx, s)
	s.synced.complete = outcome.Continues() && len(s.synced.WaitingForTurn()) == 0

	return outcome.Within(s.synced.requeueAfter()), nil
}

// requeueAfter returns after which time the next run is due because of what the copy does not show; 0 if it shows all.
func (s *synced) requeueAfter() time.Duration {
	if s.unshown == nil {
		return 0
	}

	return time.Second
}

// whatIsLeft returns the outcome for the changes that are left after the apply. It continues if none is.
func (r *reconciler) whatIsLeft(ctx context.Context, s *scope) loop.Outcome {
	decision := s.synced.Decision
	outcome, leaving, waiting, unconsented := decision.Outcome(), decision.Leaving(), decision.WaitingForOmni(), decision.Unconsented()

	switch {
	case !outcome.Continues():
		return outcome
	case len(leaving) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", leavingText(leaving, r.leaving(ctx, s)))
	case len(waiting) > 0:
		return loop.Wait(0, v1alpha1.ReasonProgressing, "%s", waitingText(waiting, r.leaving(ctx, s)))
	case len(unconsented) > 0:
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "%s held back", consent.ChangeNames(unconsented))
	case len(decision.WaitingForTurn()) > 0:
		_, message := decision.HeldCondition()

		return loop.Note(v1alpha1.ReasonHeld, "%s", message)
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "Omni has what the objects say")
	}
}

// leavingText returns what the destruction of a part of a cluster waits for.
func leavingText(waits []plan.Change, machines []observe.Blocker) string {
	return "waiting for Omni to destroy " + consent.ChangeNames(waits) + leavingMachines(machines)
}

// waitingText returns what changes wait for that cannot be made yet.
func waitingText(waits []plan.Change, machines []observe.Blocker) string {
	return fmt.Sprintf("waiting for Omni: %s: %s", consent.ChangeNames(waits), consent.Reasons(waits)) + leavingMachines(machines)
}

// leaving returns the machines that leave the cluster.
func (r *reconciler) leaving(ctx context.Context, s *scope) []observe.Blocker {
	machines, err := observe.Leaving(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return nil // the message says a little less
	}

	return machines
}
