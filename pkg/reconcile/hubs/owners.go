package hubs

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// Owners has the clusters of which this process sees in Omni that no other hub has them. It is safe for concurrent use. A nil
// one sees nothing, and takes notes of nothing.
type Owners struct {
	mu      sync.Mutex
	seen    map[types.NamespacedName]types.UID
	waiting map[types.NamespacedName]map[Waiter]struct{}
}

// Waiter is an object that waits for a note of its cluster, and the trigger that wakes it. Without a trigger nothing does.
type Waiter struct {
	Object types.NamespacedName
	Wake   *trigger.Trigger[types.NamespacedName]
}

// NewOwners returns Owners without a note.
func NewOwners() *Owners {
	return &Owners{seen: map[types.NamespacedName]types.UID{}, waiting: map[types.NamespacedName]map[Waiter]struct{}{}}
}

// Note records what a run has seen of a cluster in Omni: what its status.otherHub says now. If no other hub has it, who waits
// for that is woken: the status may say the same as before, and then nothing is written.
func (o *Owners) Note(cluster *v1alpha1.OmniCluster) {
	name := client.ObjectKeyFromObject(cluster)

	if o == nil || cluster.Status.OtherHub != "" {
		o.Lost(name)

		return
	}

	o.mu.Lock()
	o.seen[name] = cluster.UID
	woken := o.waiting[name]
	delete(o.waiting, name)
	o.mu.Unlock()

	for waiter := range woken {
		waiter.Wake.Fire(waiter.Object)
	}
}

// Lost takes a note back: what becomes of the cluster in Omni is not seen any more. Who waits goes on waiting.
func (o *Owners) Lost(cluster types.NamespacedName) {
	if o == nil {
		return
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	delete(o.seen, cluster)
}

// Confirms reports whether this process sees that no other hub has the cluster. If not, the waiter is woken when it does.
func (o *Owners) Confirms(cluster *v1alpha1.OmniCluster, waiter Waiter) bool {
	if o == nil {
		return false
	}

	name := client.ObjectKeyFromObject(cluster)

	o.mu.Lock()
	defer o.mu.Unlock()

	if uid, found := o.seen[name]; found && uid == cluster.UID {
		return true
	}

	if waiter.Wake != nil {
		if o.waiting[name] == nil {
			o.waiting[name] = map[Waiter]struct{}{}
		}

		o.waiting[name][waiter] = struct{}{}
	}

	return false
}

// Forget removes a cluster that does not exist any more, and who waits for it.
func (o *Owners) Forget(cluster types.NamespacedName) {
	if o == nil {
		return
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	delete(o.seen, cluster)
	delete(o.waiting, cluster)
}
