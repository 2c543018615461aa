package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
)

// longestFarewell is how long a deletion waits for a cluster that should be there
// and does not answer. An upgrade or a repair is over by then; for ever is too long.
const longestFarewell = time.Hour

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
	// ParentGone is true if the OmniCluster does not exist, ParentDestroying if it is being deleted together with
	// the cluster in Omni (not orphaned).
	ParentGone, ParentDestroying bool
	// Problem is why the cluster cannot be used now. Empty if it can.
	Problem string
	// NoKubeconfig is true if the problem is that there is no kubeconfig any more.
	NoKubeconfig bool
	// Asking is true if the problem is only that the cluster has not answered yet. A
	// probe ends by itself, so this passes.
	Asking bool
	// Since is when the deletion began, Now is now.
	Since, Now time.Time
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
	case f.ParentGone && !f.Asking:
		return PartLetGo, "its OmniCluster is gone, and the cluster cannot be used: " + f.Problem
	case f.Now.Sub(f.Since) >= longestFarewell:
		return PartLetGo, fmt.Sprintf("for %s the cluster could not be used: %s", longestFarewell, f.Problem)
	default:
		return PartWait, fmt.Sprintf("%s; it is tried until %s, then given up (set spec.deletionPolicy to Orphan to let go now)",
			f.Problem, f.Since.Add(longestFarewell).UTC().Format(time.RFC3339))
	}
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
// cluster. The Outcome is a Block for PartWait, and continues otherwise.
func (d *Door) Leave(ctx context.Context, guest Guest, now time.Time) (Parting, loop.Outcome, error) {
	parent, err := d.parent(ctx, guest)
	if err != nil {
		return Parting{}, loop.Outcome{}, err
	}

	farewell := Farewell{ParentGone: parent == nil, Since: guest.Object.GetDeletionTimestamp().Time, Now: now}
	omniClusterID := ""

	if parent != nil {
		farewell.ParentDestroying = !parent.DeletionTimestamp.IsZero() && !parent.Spec.DeletePolicy.Orphan &&
			parent.Spec.ChangePolicy != v1alpha1.ChangePolicyObserve
		omniClusterID = parent.Status.OmniClusterID
	}

	var opened *Opened

	if !farewell.ParentDestroying {
		if opened, err = d.tryOpen(ctx, guest, omniClusterID, &farewell); err != nil {
			return Parting{}, loop.Outcome{}, err
		}
	}

	part, why := farewell.Decide()
	if part == PartWait {
		again := later
		if farewell.Asking {
			again = soon
		}

		return Parting{Part: part, Why: why}, loop.Block(again, v1alpha1.ReasonClusterUnreachable, "%s", why), nil
	}

	return Parting{Part: part, Why: why, Opened: opened}, loop.Continue(v1alpha1.ReasonDeleting, "%s", why), nil
}

// tryOpen is Open for a farewell: what is in the way becomes its problem.
func (d *Door) tryOpen(ctx context.Context, guest Guest, omniClusterID string, farewell *Farewell) (*Opened, error) {
	cluster, err := d.connect(ctx, guest, false)
	if err == nil {
		opened, outcome, err := d.admit(ctx, cluster, guest, omniClusterID)
		if err != nil {
			return nil, err
		}

		if !outcome.Continues() {
			farewell.Problem, farewell.Asking = outcome.Message(), outcome.Postpones()
		}

		return opened, nil
	}

	farewell.NoKubeconfig = errors.Is(err, errNoKubeconfig)

	outcome, err := d.explain(cluster, guest, err)
	farewell.Problem = outcome.Message()

	return nil, err
}

// GuestOf makes the guest of an object.
func GuestOf(object client.Object) Guest {
	switch o := object.(type) {
	case *v1alpha1.OmniSecretSync:
		return Guest{Object: o, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef, Known: o.Status.ClusterID}
	case *v1alpha1.OmniHelmRelease:
		return Guest{Object: o, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef, Known: o.Status.ClusterID}
	default:
		return Guest{Object: object}
	}
}
