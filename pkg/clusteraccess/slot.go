package clusteraccess

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/backoff"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// enter takes one of the slots of a requester's cluster, until release is called, which may be called more than once.
// Without a slot, release is nil and the reconcile ends; the object's status stays, because nothing is wrong.
//
// The slots are those of the OmniCluster that the objects name: all kubeconfigs for it share them, however often they
// change.
//
// What a kubeconfig or a server reports about itself would not separate clusters better (behind Omni all have one
// address), and can be forged: with an unverified token of another cluster, or a server that shows another cluster's
// UID, any user could take the slots of others. So only objects of one namespace share slots. A user who points several
// OmniClusters at one server that hangs gets slots for each, which is no more than with several such servers.
func (c *Clusters) enter(requester Requester) (release func(), outcome loop.Outcome) {
	release, ok := c.slots().TryAcquire(keyOf(requester), 1, limiter.Waiter{Name: requester.name(), Wake: requester.waker()})
	if !ok {
		return nil, loop.Postpone(backoff.Jitter(limiter.WakePause), v1alpha1.ReasonProgressing, "other objects in the workload cluster come first")
	}

	return release, loop.Proceed()
}

// name identifies a requester: objects of different kinds may have the same name.
func (r Requester) name() string { return fmt.Sprintf("%T %s", r.Object, r.Object.GetName()) }

// waker returns what wakes the object, without holding the object.
func (r Requester) waker() func() {
	name, wake := client.ObjectKeyFromObject(r.Object), r.Wake

	return func() {
		if wake != nil {
			wake.Fire(name)
		}
	}
}

// slots returns the limiter of all clusters.
func (c *Clusters) slots() *limiter.Limiter[types.NamespacedName] {
	c.once.Do(func() { c.limiter = limiter.New(limiter.Limits[types.NamespacedName]{PerKey: int64(c.Runs)}) })

	return c.limiter
}
