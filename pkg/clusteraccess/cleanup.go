package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// longestCleanup is how long a deletion waits for a cluster that should be there
// and does not answer. An upgrade or a repair is over by then; for ever is too long.
const longestCleanup = time.Hour

// shortestCleanup is how long this process tries, whatever the deadline: one
// answer of an API that is overloaded or restarts says nothing, also when the
// OmniCluster is gone, or when the controller was down until the deadline.
const shortestCleanup = 2 * time.Minute

// Action is what to do about the clean-up of an object that is being deleted.
type Action int

// The actions.
const (
	// ActionCleanUp: the cluster answers and is the right one. Clean up there.
	ActionCleanUp Action = iota + 1
	// ActionLetGo: nothing can or need be cleaned up any more. Remove the finalizer,
	// with an event that says what stays behind.
	ActionLetGo
	// ActionWait: the cluster should be there, and is not. Try again.
	ActionWait
)

// CleanupPolicy is what decides about the clean-up of an object in a workload cluster.
type CleanupPolicy struct {
	// ParentGone is true if the OmniCluster does not exist, ParentDestroying if it is being deleted and Omni destroys
	// its cluster.
	ParentGone, ParentDestroying bool
	// Problem is why the cluster cannot be used now, and Reason the condition reason for it. Empty if it can.
	Problem, Reason string
	// NoKubeconfig is true if the problem is that there is no kubeconfig any more.
	NoKubeconfig bool
	// Asking is true if the problem is only that the cluster has not answered yet. A
	// probe ends by itself, so this passes.
	Asking bool
	// Passing is true if the problem is one that passes by itself more often than not: the cluster did not answer, or
	// what stands before it did.
	Passing bool
	// Since is when the deletion began, Now is now.
	Since, Now time.Time
	// First is when this process first had such a problem with this deletion. Zero counts as long ago.
	First time.Time
}

// Decide says what to do, and why.
func (p CleanupPolicy) Decide() (Action, string) {
	switch {
	case p.ParentDestroying:
		return ActionLetGo, "the cluster is being destroyed with its OmniCluster"
	case p.Problem == "":
		return ActionCleanUp, ""
	case p.NoKubeconfig:
		return ActionLetGo, p.Problem
	case p.ParentGone && !p.Asking && !p.Passing:
		return ActionLetGo, goneWith + p.Problem
	}

	end := p.end()

	switch {
	case p.Now.Before(end):
		return ActionWait, fmt.Sprintf("%s; it is tried until %s, then given up (set spec.deletionPolicy to Orphan to let go now)",
			p.Problem, end.UTC().Format(time.RFC3339))
	case p.ParentGone:
		return ActionLetGo, goneWith + p.Problem
	default:
		return ActionLetGo, fmt.Sprintf("for %s the cluster could not be used: %s", longestCleanup, p.Problem)
	}
}

// goneWith begins the reason to let go of a cluster for which nobody vouches.
const goneWith = "its OmniCluster is gone, and the cluster cannot be used: "

// end is when the cluster is given up. Without an OmniCluster nothing says that it
// should be there, so only what may pass is waited for.
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

// Cleanup is what to do, as PlanCleanup found it.
type Cleanup struct {
	Action Action
	// Why says what led to ActionLetGo, for the event.
	Why string
	// Opened is the cluster, for ActionCleanUp; else nil.
	Opened *Opened
}

// PlanCleanup finds out what to do about the clean-up of an object that is being
// deleted in its workload cluster. The Outcome is a Block for ActionWait, or postpones if enough runs are in the
// cluster already, and continues otherwise.
func (d *Access) PlanCleanup(ctx context.Context, requester Requester, now time.Time) (Cleanup, loop.Outcome, error) {
	parent, err := d.parent(ctx, requester)
	if err != nil {
		return Cleanup{}, loop.Outcome{}, err
	}

	policy := CleanupPolicy{ParentGone: parent == nil, Since: requester.Object.GetDeletionTimestamp().Time, Now: now}
	if parent != nil {
		policy.ParentDestroying = destroying(parent)
	}

	var opened *Opened

	if !policy.ParentDestroying {
		var turn loop.Outcome

		opened, turn, err = d.tryOpen(ctx, requester, parent, &policy)

		switch {
		case err != nil:
			return Cleanup{}, loop.Outcome{}, err
		case turn.Postpones():
			return Cleanup{Action: ActionWait}, turn, nil
		}
	}

	if policy.Problem != "" {
		policy.First = d.troubles.first(requester.Object.GetUID(), stepOpen, now)
	}

	action, why := policy.Decide()
	if action != ActionWait {
		d.troubles.over(requester.Object.GetUID(), stepOpen)
	}

	if action == ActionWait {
		again := later
		if policy.Asking {
			again = soon
		}

		return Cleanup{Action: action, Why: why}, loop.Block(again, policy.Reason, "%s", why), nil
	}

	return Cleanup{Action: action, Why: why, Opened: opened}, loop.Continue(v1alpha1.ReasonDeleting, "%s", why), nil
}

// Destroying tells whether an object's workload cluster is being destroyed with its
// OmniCluster: what was begun there cannot end well any more.
func (d *Access) Destroying(ctx context.Context, requester Requester) (bool, error) {
	parent, err := d.parent(ctx, requester)

	return parent != nil && destroying(parent), err
}

// destroying goes by what Omni says of the cluster: a deletion may also be blocked,
// for ever, or let go of a cluster that is not the object's or that stays. Then the
// cluster lives on, and what was made there has to be cleaned up.
func destroying(parent *v1alpha1.OmniCluster) bool {
	return !parent.DeletionTimestamp.IsZero() && parent.Status.Omni != nil && parent.Status.Omni.Phase == v1alpha1.ClusterPhaseDestroying
}

// tryOpen is Open for PlanCleanup: what is in the way becomes the policy's problem, and
// only the wait for a turn is none. The parent may be nil.
func (d *Access) tryOpen(ctx context.Context, requester Requester, parent *v1alpha1.OmniCluster, policy *CleanupPolicy) (*Opened, loop.Outcome, error) {
	accepted, err := d.hubs(ctx, parent)
	if err != nil {
		return nil, loop.Outcome{}, err
	}

	omniClusterID := ""
	if parent != nil {
		omniClusterID = parent.Status.OmniClusterID
	}

	cluster, err := d.connect(ctx, requester, parent, &accepted)
	if err != nil {
		policy.NoKubeconfig = errors.Is(err, errNoKubeconfig)

		outcome, err := d.explain(cluster, requester, err)
		policy.Problem, policy.Reason = outcome.Message(), outcome.Reason()

		return nil, loop.Outcome{}, err
	}

	leave, turn := d.Clusters.enter(requester)
	if leave == nil {
		return nil, turn, nil
	}

	opened, outcome, err := d.admit(ctx, cluster, requester, leave, omniClusterID)
	if err == nil && !outcome.Continues() {
		policy.Problem, policy.Reason, policy.Asking = outcome.Message(), outcome.Reason(), outcome.Postpones()
		policy.Passing = policy.Reason == v1alpha1.ReasonClusterUnreachable || policy.Reason == v1alpha1.ReasonError
	}

	if opened != nil {
		opened.Hubs, opened.Names = accepted, names(requester, parent)
	}

	return opened, loop.Outcome{}, err
}

// RequesterOf makes the requester of an object, which the trigger wakes; it may be nil.
func RequesterOf(object client.Object, wake *trigger.Trigger[types.NamespacedName]) Requester {
	switch o := object.(type) {
	case *v1alpha1.OmniSecretSync:
		return Requester{Object: o, Wake: wake, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef, Known: o.Status.ClusterID}
	case *v1alpha1.OmniHelmRelease:
		return Requester{Object: o, Wake: wake, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef, Known: o.Status.ClusterID}
	default:
		return Requester{Object: object, Wake: wake}
	}
}
