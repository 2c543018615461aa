package clusteraccess

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/backoff"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// slotPause is how long a run without a slot waits when nobody wakes it. The
// next free slot does, so this is for lost wake-ups only.
const slotPause = 5 * time.Second

// enter takes one of the slots of a requester's cluster, until release is called; more than
// once does no harm. Without a slot release is nil and the run is over, and its
// object's status stays: nothing is wrong with it.
//
// The slots are those of the OmniCluster that the objects name: however many
// kubeconfigs lead there, and however often they change, they are the same.
//
// What a kubeconfig or a server says of itself would tell clusters apart no better
// (behind Omni all have one address) and is nobody's word: with a token, not
// verified, of another cluster, or a server that shows another one's UID, anybody
// could take the slots of others. So only objects of one namespace share slots.
// Who lets several OmniClusters lead to one server that hangs gets slots for each,
// which is no more than several servers that hang.
func (c *Clusters) enter(requester Requester) (release func(), outcome loop.Outcome) {
	name := client.ObjectKeyFromObject(requester.Object)
	cluster := types.NamespacedName{Namespace: name.Namespace, Name: requester.Cluster}

	release, ok := c.slots().TryAcquire(cluster, 1, limiter.Waiter{Name: requester.name(), Wake: func() {
		if requester.Wake != nil {
			requester.Wake.Fire(name)
		}
	}})
	if !ok {
		return nil, loop.Postpone(backoff.Jitter(slotPause), v1alpha1.ReasonProgressing, "other objects in the workload cluster come first")
	}

	return release, loop.Outcome{}
}

// name tells requesters apart: objects of different kinds may have the same name.
func (r Requester) name() string { return fmt.Sprintf("%T %s", r.Object, r.Object.GetName()) }

// slots is the limiter of all clusters.
func (c *Clusters) slots() *limiter.Limiter[types.NamespacedName] {
	c.once.Do(func() { c.limiter = limiter.New(limiter.Limits[types.NamespacedName]{PerKey: int64(c.Runs)}) })

	return c.limiter
}
