package clusteraccess

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// slotPause is how long a run without a slot waits when nobody wakes it. The
// next free slot does, so this is for lost wake-ups only.
const slotPause = 5 * time.Second

// visitor is who wants a slot in a workload cluster: an object, and what wakes it.
type visitor struct {
	name    types.NamespacedName
	trigger *trigger.Trigger[types.NamespacedName]
}

func (v visitor) wake() {
	if v.trigger != nil {
		v.trigger.Fire(v.name)
	}
}

// limiters keeps the limiter of each workload cluster, by the OmniCluster that its
// objects name. However many kubeconfigs lead there, and however often they change,
// the slots are the same.
//
// What a kubeconfig or a server says of itself would tell clusters apart no better
// (behind Omni all have one address) and is nobody's word: with a token, not
// verified, of another cluster, or a server that shows another one's UID, anybody
// could take the slots of others. So only objects of one namespace share slots.
// Who lets several OmniClusters lead to one server that hangs gets slots for each,
// which is no more than several servers that hang.
//
// The zero value is ready; it is safe for concurrent use.
type limiters struct {
	mu sync.Mutex
	of map[types.NamespacedName]*limiter.Limiter[visitor]
}

// enter takes one of so many slots of a cluster; false if there is none.
func (s *limiters) enter(cluster types.NamespacedName, limit int, who visitor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.of == nil {
		s.of = map[types.NamespacedName]*limiter.Limiter[visitor]{}
	}

	if s.of[cluster] == nil {
		s.of[cluster] = limiter.New(limit, nil, visitor.wake)
	}

	return s.of[cluster].Enter(who)
}

// leave gives a slot back, and forgets the cluster with the last one.
func (s *limiters) leave(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()

	left := s.of[cluster]
	if left.Leave(); left.Empty() {
		delete(s.of, cluster)
	}
}

// enter takes one of the slots of a requester's cluster, until leave is called; more than
// once does no harm. Without a slot leave is nil and the run is over, and its
// object's status stays: nothing is wrong with it.
func (c *Clusters) enter(requester Requester) (leave func(), outcome loop.Outcome) {
	name := client.ObjectKeyFromObject(requester.Object)
	cluster := types.NamespacedName{Namespace: name.Namespace, Name: requester.Cluster}

	if !c.limiters.enter(cluster, c.Runs, visitor{name: name, trigger: requester.Wake}) {
		return nil, loop.Postpone(slotPause-rand.N(slotPause/2), v1alpha1.ReasonProgressing, "other objects in the workload cluster come first")
	}

	return sync.OnceFunc(func() { c.limiters.leave(cluster) }), loop.Outcome{}
}

// Done says that the run does not use the cluster any more. More than once does no
// harm.
func (o *Opened) Done() {
	if o != nil && o.leave != nil {
		o.leave()
	}
}
