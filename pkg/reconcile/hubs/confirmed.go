package hubs

import (
	"context"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

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

// Well has since when each OmniCluster runs well, as this process saw it last. It is safe for concurrent use. A nil one
// takes notes of nothing.
type Well struct {
	first *trigger.Trigger[string]

	mu    sync.Mutex
	known map[types.NamespacedName]observed
}

// observed is since when a cluster runs well; nil if it does not.
type observed struct {
	uid   types.UID
	since *metav1.Time
}

// NewWell returns a Well that wakes who waits for them at a pace.
func NewWell(pacing trigger.Pacing) *Well {
	return &Well{first: trigger.New[string](pacing), known: map[types.NamespacedName]observed{}}
}

// Note records what the process has seen of a cluster: what its status.rollout.wellSince says now. The first time it wakes
// who waits for clusters of the namespace: the status may say the same as before, and then nothing is written.
func (w *Well) Note(cluster *v1alpha1.OmniCluster) {
	if w == nil || cluster.Status.Rollout == nil {
		return
	}

	name := client.ObjectKeyFromObject(cluster)

	w.mu.Lock()
	before, found := w.known[name]
	w.known[name] = observed{uid: cluster.UID, since: cluster.Status.Rollout.WellSince.DeepCopy()}
	w.mu.Unlock()

	if !found || before.uid != cluster.UID {
		w.first.Fire(cluster.Namespace)
	}
}

// Confirms reports whether a status says what the process saw last of how the cluster runs. One that is Ready and does not say
// since when it runs well is from before a run that found that it does not.
func (w *Well) Confirms(cluster *v1alpha1.OmniCluster) bool {
	if w == nil {
		return false
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	known, found := w.known[client.ObjectKeyFromObject(cluster)]
	status := cluster.Status

	switch {
	case !found, known.uid != cluster.UID, status.Rollout == nil, !known.since.Equal(status.Rollout.WellSince):
		return false
	default:
		return known.since != nil || !apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
	}
}

// Forget removes a cluster that does not exist any more.
func (w *Well) Forget(name types.NamespacedName) {
	if w == nil {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	delete(w.known, name)
}

// Source is the source for a controller: find returns the objects that wait for clusters of a namespace.
func (w *Well) Source(find func(ctx context.Context, namespace string) []reconcile.Request) source.Source {
	return w.first.Source(find)
}
