package clusteraccess

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// The kinds of objects that work in workload clusters, as Waiting names them.
const (
	KindSecretSync  = "OmniSecretSync"
	KindHelmRelease = "OmniHelmRelease"
)

// Waiting returns how many runs of a kind wait for a slot of their workload cluster, and how many for one of their namespace. An
// object may wait for both, one after the other.
func (c *Clusters) Waiting(kind string) (forCluster, forNamespace int) {
	c.once.Do(c.makeLimiters)

	return c.limiter.Waiting(kind), c.share(kind).Waiting(kind)
}

// enter takes one of the slots of a requester's cluster, and one of those that its namespace has for its kind, until release is
// called, which may be called more than once.
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
	c.once.Do(c.makeLimiters)

	waiter := limiter.Waiter{Name: requester.name(), Kind: requester.kind(), Wake: requester.waker()}

	exitCluster, ok := c.limiter.TryAcquire(keyOf(requester), 1, waiter)
	if !ok {
		return nil, notNow("other objects in the workload cluster come first")
	}

	// After the cluster: who waits for that takes nothing from its namespace.
	exitNamespace, ok := c.share(waiter.Kind).TryAcquire(requester.Object.GetNamespace(), 1, waiter)
	if !ok {
		exitCluster()

		return nil, notNow("other objects of the namespace come first")
	}

	return func() { exitCluster(); exitNamespace() }, loop.Proceed()
}

// notNow postpones a reconcile without a slot.
func notNow(why string) loop.Outcome {
	return loop.Postpone(limiter.Jitter(limiter.WakePause), v1alpha1.ReasonProgressing, "%s", why)
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

// kind is the kind of the requester's object.
func (r Requester) kind() string {
	if _, ok := r.Object.(*v1alpha1.OmniSecretSync); ok {
		return KindSecretSync
	}

	return KindHelmRelease
}

// share returns the limiter of a kind, by namespace. Each kind has workers of its own.
func (c *Clusters) share(kind string) *limiter.Limiter[string] {
	if kind == KindSecretSync {
		return c.syncs
	}

	return c.releases
}

// makeLimiters makes the limiters, when the numbers are known.
func (c *Clusters) makeLimiters() {
	c.limiter = limiter.New(limiter.Limits[types.NamespacedName]{PerKey: int64(c.Runs)})
	c.syncs = limiter.New(limiter.Limits[string]{PerKey: int64(c.SyncRuns)})
	c.releases = limiter.New(limiter.Limits[string]{PerKey: int64(c.ReleaseRuns)})
}
