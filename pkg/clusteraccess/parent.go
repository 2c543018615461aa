package clusteraccess

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// parent reads the OmniCluster; nil if there is none.
func (a *Access) parent(ctx context.Context, requester Requester) (*v1alpha1.OmniCluster, error) {
	parent := &v1alpha1.OmniCluster{}

	err := a.Client.Get(ctx, keyOf(requester), parent)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no parent is no error
	}

	if err != nil {
		return nil, fmt.Errorf("read OmniCluster %q: %w", requester.Cluster, err)
	}

	return parent, nil
}

// keyOf returns the name of a requester's OmniCluster.
func keyOf(requester Requester) client.ObjectKey {
	return client.ObjectKey{Namespace: requester.Object.GetNamespace(), Name: requester.Cluster}
}

// OtherHub returns the status.otherHub of an object that needs the cluster of an OmniCluster, on the hub with this ID. While only
// another hub has seen the cluster it is that hub: if the OmniCluster goes first, this hub never will.
func OtherHub(ctx context.Context, reader client.Reader, hubID string, requester Requester) string {
	parent := &v1alpha1.OmniCluster{}
	// It is only read, and may be large.
	if err := reader.Get(ctx, keyOf(requester), parent, &client.GetOptions{UnsafeDisableDeepCopy: new(true)}); err != nil {
		return requester.OtherHub
	}

	if hub := otherHub(parent, requester.OtherHub); hub != "" || !seenElsewhere(parent, hubID) {
		return hub
	}

	return parent.Status.HubID
}

// otherHub returns the other hub to which a cluster belongs; empty if it belongs to none. What the object knows counts while there
// is no OmniCluster, and while no hub has seen the cluster for that: it may have been made anew. The parent may be nil.
func otherHub(parent *v1alpha1.OmniCluster, known string) string {
	if parent == nil {
		return known
	}

	switch {
	case parent.Status.OtherHub != "":
		return parent.Status.OtherHub
	case parent.Status.HubID == "" && !apimeta.IsStatusConditionTrue(parent.Status.Conditions, v1alpha1.ConditionConnectionReady):
		return known
	default:
		return ""
	}
}

// ofOtherHub says that the cluster of a requester belongs to another hub; empty if it does not, or is not known to. The parent
// may be nil.
func (a *Access) ofOtherHub(requester Requester, parent *v1alpha1.OmniCluster) string {
	hub := otherHub(parent, requester.OtherHub)
	if hub == "" {
		return ""
	}

	what := "carries the mark of another hub in Omni"
	if parent == nil {
		what = "was last seen with the mark of another hub, or by another hub in Omni"
	}

	return fmt.Sprintf("the cluster of OmniCluster %q %s, %s (this hub is %s)", requester.Cluster, what, redact.Line(hub), a.HubID)
}

// seenElsewhere reports whether it was another hub that last saw in Omni whose the cluster of an OmniCluster is: that was restored or
// copied from there, and its conditions are of that hub. It is false if it is not known which hub it was.
func seenElsewhere(parent *v1alpha1.OmniCluster, hubID string) bool {
	return parent.Status.HubID != "" && parent.Status.HubID != hubID
}

// seenHere waits for this hub to see in Omni whose the cluster of an OmniCluster is, if only another hub has. What that hub removed in
// the workload cluster since carries no mark, so nothing there tells whose it is. The parent may be nil.
func (a *Access) seenHere(requester Requester, parent *v1alpha1.OmniCluster) loop.Outcome {
	if parent == nil || !seenElsewhere(parent, a.HubID) {
		return loop.Proceed()
	}

	return loop.Wait(0, v1alpha1.ReasonClusterNotInOmni, "OmniCluster %q was last looked at by another hub, %s (this hub is %s): "+
		"nothing is done in the workload cluster until this hub has seen in Omni whose it is; see the conditions of the OmniCluster",
		requester.Cluster, redact.Line(parent.Status.HubID), a.HubID)
}

// seenNow waits for this process to see in Omni that no other hub has the cluster of an OmniCluster, before something is made again
// there: what the object made is absent. The OmniCluster may not say yet that another hub took the cluster over, while this one was
// away or cannot read Omni, and what that hub removed since carries no mark.
func (a *Access) seenNow(requester Requester, parent *v1alpha1.OmniCluster, what string) loop.Outcome {
	waiter := hubs.Waiter{Object: client.ObjectKeyFromObject(requester.Object), Wake: requester.Wake}
	if a.Owners.Confirms(parent, waiter) {
		return loop.Proceed()
	}

	return loop.Wait(0, v1alpha1.ReasonClusterNotInOmni, "%s was made by this object and is gone. Another hub may have taken the cluster over and removed it, "+
		"so it is made again only when omni-controller sees in Omni whose the cluster is. If that lasts, the conditions of OmniCluster %q say why: "+
		"%s may lead elsewhere or need another key. If another hub has the cluster now, set spec.deletionPolicy to Orphan and delete this object",
		what, parent.Name, names(requester, parent))
}

// destroying goes by the cluster's phase in Omni: a deletion may also be blocked, for ever, or release a cluster that
// is not the object's or that stays. Then the cluster lives on, and what was made there has to be cleaned up.
func destroying(parent *v1alpha1.OmniCluster) bool {
	return !parent.DeletionTimestamp.IsZero() && parent.Status.Omni != nil && parent.Status.Omni.Phase == v1alpha1.ClusterPhaseDestroying
}

// hubs returns the hubs whose marks in the cluster of an OmniCluster, which may be nil, count as the requester's own.
func (a *Access) hubs(ctx context.Context, parent *v1alpha1.OmniCluster) (hubs.Hubs, error) {
	if parent == nil {
		return hubs.Of(a.HubID, nil), nil
	}

	return hubs.OfCluster(ctx, a.Client, a.HubID, parent)
}

// names returns the object that can name a previous hub for a requester. The parent may be nil.
func names(requester Requester, parent *v1alpha1.OmniCluster) string {
	if parent == nil {
		return fmt.Sprintf("Secret %q", requester.Kubeconfig.Name)
	}

	return fmt.Sprintf("OmniConnection %q", parent.Spec.ConnectionRef.Name)
}

// ParentChanged is a predicate for updates of an OmniCluster that affect the access: to its spec, a deletion,
// status.omniClusterID, whether it is another hub's, which hub has seen that, and whether Omni destroys the cluster. The
// objects in its cluster have to be reconciled then.
func ParentChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, standingChanged())
}

// standingChanged is the part of ParentChanged for the status.
func standingChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*v1alpha1.OmniCluster)
		after, stillCluster := e.ObjectNew.(*v1alpha1.OmniCluster)

		return isCluster && stillCluster &&
			(before.Status.OmniClusterID != after.Status.OmniClusterID || destroying(before) != destroying(after) ||
				otherHub(before, "") != otherHub(after, "") ||
				before.Status.HubID != "" && before.Status.HubID != after.Status.HubID) // the first one changes nothing
	}}
}
