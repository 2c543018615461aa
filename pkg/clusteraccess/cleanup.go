package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
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

// longestCleanup is how long a deletion waits for a cluster that should exist and does not answer. Upgrades and repairs
// take less time, and a deletion must not wait for ever.
const longestCleanup = time.Hour

// shortestCleanup is how long this process tries at least, whatever the deadline: one bad answer of an API that is
// overloaded or restarts proves nothing, even if the OmniCluster is gone, or if the controller was down until the
// deadline.
const shortestCleanup = 2 * time.Minute

// goneWith begins the reason to give up a cluster whose OmniCluster is gone.
const goneWith = "its OmniCluster is gone, and the cluster cannot be used: "

// Action is what to do about the clean-up of an object that is being deleted.
type Action int

// The actions.
const (
	// ActionCleanUp: the cluster answers and is the right one. Clean up there.
	ActionCleanUp Action = iota + 1
	// ActionLetGo: nothing can or need be cleaned up any more. Remove the finalizer, with an event that names what stays
	// behind.
	ActionLetGo
	// ActionWait: the cluster should exist, but cannot be used. Try again.
	ActionWait
)

// CleanupPolicy holds the facts that decide about the clean-up of an object in a workload cluster.
type CleanupPolicy struct {
	// ParentGone is true if the OmniCluster does not exist, ParentDestroying if it is being deleted and Omni destroys its
	// cluster.
	ParentGone, ParentDestroying bool
	// OtherHub says that the cluster is another hub's; empty if it is not known to be. That hub may still need
	// what bears this object's mark: it writes no mark while its own object is suspended.
	OtherHub string
	// Problem is why the cluster cannot be used now, and Reason the condition reason for it. Empty if it can be used.
	Problem, Reason string
	// NoKubeconfig is true if the problem is that there is no kubeconfig any more, and no export to write one.
	NoKubeconfig bool
	// NoSecret is true if the problem is that there is no Secret for a kubeconfig, whoever is to write one.
	NoSecret bool
	// Unrecorded is Requester.Unrecorded.
	Unrecorded bool
	// Asking is true if the problem is only that a probe of the cluster is under way. A probe ends by itself, so this
	// passes.
	Asking bool
	// Passing is true if the problem usually passes by itself: the cluster did not answer, or only a proxy before it did.
	Passing bool
	// Since is when the deletion began, Now is the current time; all times are by the clock of omni-apiserver.
	Since, Now time.Time
	// First is when this process first had such a problem with this deletion. Zero counts as long ago.
	First time.Time
}

// Decide returns the action, and the reason.
func (p CleanupPolicy) Decide() (Action, string) {
	switch {
	case p.ParentDestroying:
		return ActionLetGo, "the cluster is being destroyed with its OmniCluster"
	case p.OtherHub != "":
		return ActionLetGo, "nothing is removed in the workload cluster: " + p.OtherHub
	case p.Problem == "":
		return ActionCleanUp, ""
	case p.NoKubeconfig:
		return ActionLetGo, p.Problem
	case p.ParentGone && !p.Asking && !p.Passing:
		return ActionLetGo, goneWith + p.Problem
	case p.Unrecorded && !p.Asking:
		return ActionLetGo, p.Problem
	}

	end := p.end()

	switch {
	case p.Now.Before(end):
		return ActionWait, fmt.Sprintf("%s; it is tried until %s, then given up (set spec.deletionPolicy to Orphan to let go now)",
			p.Problem, words.Time(end))
	case p.ParentGone:
		return ActionLetGo, goneWith + p.Problem
	default:
		return ActionLetGo, fmt.Sprintf("for %s the clean-up did not succeed: %s", longestCleanup, p.Problem)
	}
}

// end returns when to give up the cluster. Without an OmniCluster the cluster need not exist, so only problems that may
// pass are waited for.
func (p CleanupPolicy) end() time.Time {
	end := p.Since
	if !p.ParentGone {
		end = p.Since.Add(longestCleanup)
	}

	if tried := p.First.Add(shortestCleanup); !p.First.IsZero() && tried.After(end) {
		return tried
	}

	return end
}

// step is a part of a clean-up that can fail by itself.
type step int

const (
	stepOpen    step = iota + 1 // to open the cluster
	stepCleanUp                 // to remove what is there
)

// stuckCleanups records since when clean-ups fail, as far as this process has seen. After a restart they start anew,
// and are tried for a moment longer. The zero value is ready to use; it is safe for concurrent use.
type stuckCleanups struct {
	mu    sync.Mutex
	known map[cleanupStep]failing
}

// cleanupStep is a step of the clean-up of one object.
type cleanupStep struct {
	uid  types.UID
	step step
}

// failing is when a step failed first and last.
type failing struct{ first, last time.Time }

// forgetAfter is how long a failure is kept that does not recur: if a user removes an object's finalizer, over is never
// called.
const forgetAfter = 10 * time.Minute

// first records that a step failed, and returns when it first did.
func (s *stuckCleanups) first(uid types.UID, step step, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()

	for of, known := range s.known {
		if now.Sub(known.last) >= forgetAfter {
			delete(s.known, of)
		}
	}

	if s.known == nil {
		s.known = map[cleanupStep]failing{}
	}

	of := cleanupStep{uid, step}

	known, found := s.known[of]
	if !found {
		known.first = now
	}

	known.last = now
	s.known[of] = known

	return known.first
}

// over drops the record of a step that succeeded.
func (s *stuckCleanups) over(uid types.UID, step step) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.known, cleanupStep{uid, step})
}
