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

// longestFarewell is how long a deletion waits for a cluster that should be there
// and does not answer. An upgrade or a repair is over by then; for ever is too long.
const longestFarewell = time.Hour

// shortestFarewell is how long this process tries, whatever the deadline: one
// answer of an API that is overloaded or restarts says nothing, also when the
// OmniCluster is gone, or when the controller was down until the deadline.
const shortestFarewell = 2 * time.Minute

// Part is what to do about the clean-up of an object that is being deleted.
type Part int

// The ways to part.
const (
	// PartCleanUp: the cluster answers and is the right one. Clean up there.
	PartCleanUp Part = iota + 1
	// PartLetGo: nothing can or need be cleaned up any more. Remove the finalizer,
	// with an event that says what stays behind.
	PartLetGo
	// PartWait: the cluster should be there, and is not. Try again.
	PartWait
)

// Farewell is what decides how an object and a workload cluster part.
type Farewell struct {
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

// Decide gives the way to part, and why.
func (f Farewell) Decide() (Part, string) {
	switch {
	case f.ParentDestroying:
		return PartLetGo, "the cluster is being destroyed with its OmniCluster"
	case f.Problem == "":
		return PartCleanUp, ""
	case f.NoKubeconfig:
		return PartLetGo, f.Problem
	case f.ParentGone && !f.Asking && !f.Passing:
		return PartLetGo, goneWith + f.Problem
	}

	end := f.end()

	switch {
	case f.Now.Before(end):
		return PartWait, fmt.Sprintf("%s; it is tried until %s, then given up (set spec.deletionPolicy to Orphan to let go now)",
			f.Problem, end.UTC().Format(time.RFC3339))
	case f.ParentGone:
		return PartLetGo, goneWith + f.Problem
	default:
		return PartLetGo, fmt.Sprintf("for %s the cluster could not be used: %s", longestFarewell, f.Problem)
	}
}

// goneWith begins the reason to let go of a cluster for which nobody vouches.
const goneWith = "its OmniCluster is gone, and the cluster cannot be used: "

// end is when the cluster is given up. Without an OmniCluster nothing says that it
// should be there, so only what may pass is waited for.
func (f Farewell) end() time.Time {
	end := f.Since
	if !f.ParentGone {
		end = f.Since.Add(longestFarewell)
	}

	if tried := f.First.Add(shortestFarewell); !f.First.IsZero() && tried.After(end) {
		return tried
	}

	return end
}

// Parting is a way to part, as Leave found it.
type Parting struct {
	Part Part
	// Why says what led to PartLetGo, for the event.
	Why string
	// Opened is the cluster, for PartCleanUp; else nil.
	Opened *Opened
}

// Leave finds out how an object that is being deleted parts from its workload
// cluster. The Outcome is a Block for PartWait, or postpones if enough runs are in the
// cluster already, and continues otherwise.
func (d *Door) Leave(ctx context.Context, guest Guest, now time.Time) (Parting, loop.Outcome, error) {
	parent, err := d.parent(ctx, guest)
	if err != nil {
		return Parting{}, loop.Outcome{}, err
	}

	farewell := Farewell{ParentGone: parent == nil, Since: guest.Object.GetDeletionTimestamp().Time, Now: now}
	if parent != nil {
		farewell.ParentDestroying = destroying(parent)
	}

	var opened *Opened

	if !farewell.ParentDestroying {
		var turn loop.Outcome

		opened, turn, err = d.tryOpen(ctx, guest, parent, &farewell)

		switch {
		case err != nil:
			return Parting{}, loop.Outcome{}, err
		case turn.Postpones():
			return Parting{Part: PartWait}, turn, nil
		}
	}

	if farewell.Problem != "" {
		farewell.First = d.troubles.first(guest.Object.GetUID(), stepOpen, now)
	}

	part, why := farewell.Decide()
	if part != PartWait {
		d.troubles.over(guest.Object.GetUID(), stepOpen)
	}

	if part == PartWait {
		again := later
		if farewell.Asking {
			again = soon
		}

		return Parting{Part: part, Why: why}, loop.Block(again, farewell.Reason, "%s", why), nil
	}

	return Parting{Part: part, Why: why, Opened: opened}, loop.Continue(v1alpha1.ReasonDeleting, "%s", why), nil
}

// Destroying tells whether an object's workload cluster is being destroyed with its
// OmniCluster: what was begun there cannot end well any more.
func (d *Door) Destroying(ctx context.Context, guest Guest) (bool, error) {
	parent, err := d.parent(ctx, guest)

	return parent != nil && destroying(parent), err
}

// destroying goes by what Omni says of the cluster: a deletion may also be blocked,
// for ever, or let go of a cluster that is not the object's or that stays. Then the
// cluster lives on, and what was made there has to be cleaned up.
func destroying(parent *v1alpha1.OmniCluster) bool {
	return !parent.DeletionTimestamp.IsZero() && parent.Status.Omni != nil && parent.Status.Omni.Phase == v1alpha1.ClusterPhaseDestroying
}

// tryOpen is Open for a farewell: what is in the way becomes its problem, and only
// the wait for a turn is none. The parent may be nil.
func (d *Door) tryOpen(ctx context.Context, guest Guest, parent *v1alpha1.OmniCluster, farewell *Farewell) (*Opened, loop.Outcome, error) {
	accepted, err := d.hubs(ctx, parent)
	if err != nil {
		return nil, loop.Outcome{}, err
	}

	omniClusterID := ""
	if parent != nil {
		omniClusterID = parent.Status.OmniClusterID
	}

	cluster, err := d.connect(ctx, guest, parent, &accepted)
	if err != nil {
		farewell.NoKubeconfig = errors.Is(err, errNoKubeconfig)

		outcome, err := d.explain(cluster, guest, err)
		farewell.Problem, farewell.Reason = outcome.Message(), outcome.Reason()

		return nil, loop.Outcome{}, err
	}

	leave, turn := d.Clusters.enter(guest)
	if leave == nil {
		return nil, turn, nil
	}

	opened, outcome, err := d.admit(ctx, cluster, guest, leave, omniClusterID)
	if err == nil && !outcome.Continues() {
		farewell.Problem, farewell.Reason, farewell.Asking = outcome.Message(), outcome.Reason(), outcome.Postpones()
		farewell.Passing = farewell.Reason == v1alpha1.ReasonClusterUnreachable || farewell.Reason == v1alpha1.ReasonError
	}

	if opened != nil {
		opened.Hubs, opened.Names = accepted, names(guest, parent)
	}

	return opened, loop.Outcome{}, err
}

// GuestOf makes the guest of an object, which the trigger wakes; it may be nil.
func GuestOf(object client.Object, wake *trigger.Trigger[types.NamespacedName]) Guest {
	switch o := object.(type) {
	case *v1alpha1.OmniSecretSync:
		return Guest{Object: o, Wake: wake, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef, Known: o.Status.ClusterID}
	case *v1alpha1.OmniHelmRelease:
		return Guest{Object: o, Wake: wake, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef, Known: o.Status.ClusterID}
	default:
		return Guest{Object: object, Wake: wake}
	}
}
