package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// Cleanup is the decision of PlanCleanup.
type Cleanup struct {
	Action Action
	// Why is the reason for ActionLetGo, for the event.
	Why string
	// NothingLeft is true if nothing that the object may have made is left behind with ActionLetGo: the cluster is being
	// destroyed, or there is no Secret for a kubeconfig, so that nothing was made unless somebody deleted that since.
	NothingLeft bool
	// Opened is the cluster, for ActionCleanUp; else nil.
	Opened *Opened
}

// PlanCleanup decides how to clean up after an object that is being deleted in its workload cluster. The Outcome is a
// Block for ActionWait, or postpones if no slot of the cluster is free, and continues otherwise.
func (a *Access) PlanCleanup(ctx context.Context, requester Requester, now time.Time) (Cleanup, loop.Outcome, error) {
	parent, err := a.parent(ctx, requester)
	if err != nil {
		return Cleanup{}, loop.Outcome{}, err
	}

	now = a.serverTime(now)
	policy := CleanupPolicy{ParentGone: parent == nil, Unrecorded: requester.Unrecorded, Since: requester.Object.GetDeletionTimestamp().Time, Now: now}
	policy.ParentDestroying, policy.OtherHub = parent != nil && destroying(parent), a.ofOtherHub(requester, parent)

	var opened *Opened

	if !policy.ParentDestroying && policy.OtherHub == "" {
		var turn loop.Outcome

		opened, turn, err = a.tryOpen(ctx, requester, parent, &policy)

		switch {
		case err != nil:
			return Cleanup{}, loop.Outcome{}, err
		case turn.Postpones():
			return Cleanup{Action: ActionWait}, turn, nil
		case policy.Problem != "" && ctx.Err() != nil: // a process that stops has learned nothing of the cluster
			return Cleanup{}, loop.Outcome{}, fmt.Errorf("open the workload cluster: %w", ctx.Err())
		}
	}

	if policy.Problem != "" {
		policy.First = a.stuckCleanups.first(requester.Object.GetUID(), stepOpen, now)
	}

	action, why := policy.Decide()
	if action != ActionWait {
		a.stuckCleanups.over(requester.Object.GetUID(), stepOpen)
	}

	if action == ActionWait {
		again := cleanupRetry
		if policy.Asking {
			again = soon
		}

		return Cleanup{Action: action, Why: why}, loop.Block(again, policy.Reason, "%s", why), nil
	}

	return Cleanup{Action: action, Why: why, NothingLeft: policy.ParentDestroying || policy.NoSecret, Opened: opened}, loop.Continue(v1alpha1.ReasonDeleting, "%s", why), nil
}

// GiveUp decides about an object that is being deleted and could not be cleaned up in a cluster that could be opened, because of a
// problem. tried is when the attempts began of which that is the result; zero: now.
func (a *Access) GiveUp(object client.Object, problem string, tried, now time.Time) (Action, string) {
	now = a.serverTime(now)
	policy := CleanupPolicy{Problem: problem, Since: object.GetDeletionTimestamp().Time, Now: now, First: a.stuckCleanups.first(object.GetUID(), stepCleanUp, now)}

	if tried = a.serverTime(tried); !tried.IsZero() && tried.Before(policy.First) {
		policy.First = tried
	}

	return policy.Decide()
}

// serverTime returns a time of our clock by that of omni-apiserver, without the reading of Go's own clock, which does not know that
// somebody sets ours. Zero stays zero.
func (a *Access) serverTime(at time.Time) time.Time {
	if at.IsZero() || a.ServerAhead == nil {
		return at
	}

	return at.Round(0).Add(a.ServerAhead())
}

// Destroying reports whether an object's workload cluster is being destroyed with its OmniCluster: work in it cannot
// succeed any more.
func (a *Access) Destroying(ctx context.Context, requester Requester) (bool, error) {
	parent, err := a.parent(ctx, requester)

	return parent != nil && destroying(parent), err
}

// tryOpen is Open for PlanCleanup: it stores what prevents the access in the policy, except the wait for a slot. The
// parent may be nil.
func (a *Access) tryOpen(ctx context.Context, requester Requester, parent *v1alpha1.OmniCluster, policy *CleanupPolicy) (*Opened, loop.Outcome, error) {
	if seen := a.seenHere(requester, parent); !seen.Continues() {
		policy.Problem, policy.Reason = seen.Message(), seen.Reason()

		return nil, loop.Outcome{}, nil
	}

	opened, err := a.connect(ctx, requester, parent)
	if err != nil {
		missing := sources.Missing(err)
		policy.NoKubeconfig, policy.NoSecret = errors.Is(err, errNobodyWrites), missing != nil && !missing.NoKey

		outcome, err := a.explain(nil, requester, err)
		policy.Problem, policy.Reason = outcome.Message(), outcome.Reason()

		return nil, loop.Outcome{}, err
	}

	release, turn := a.Clusters.enter(requester)
	if release == nil {
		return nil, turn, nil
	}

	opened, outcome, err := a.admit(ctx, opened, requester, release, parent)
	if err == nil && !outcome.Continues() {
		policy.Problem, policy.Reason, policy.Asking = outcome.Message(), outcome.Reason(), outcome.Postpones()
		policy.Passing = policy.Reason == v1alpha1.ReasonClusterUnreachable || policy.Reason == v1alpha1.ReasonError
	}

	return opened, loop.Outcome{}, err
}
