// Package confirmed has what this process itself has seen of clusters in Omni, for controllers that otherwise know only their
// statuses. A status may be from before the process began: the controller was away, or an older database was restored.
package confirmed

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

// Clusters has since when each OmniCluster runs well, as this process saw it last. It is safe for concurrent use. A nil one
// takes notes of nothing.
type Clusters struct {
	first *trigger.Trigger[string]

	mu    sync.Mutex
	known map[types.NamespacedName]well
}

// well is since when a cluster runs well; nil if it does not.
type well struct {
	uid   types.UID
	since *metav1.Time
}

// New returns Clusters that wake who waits for them at a pace.
func New(pacing trigger.Pacing) *Clusters {
	return &Clusters{first: trigger.New[string](pacing), known: map[types.NamespacedName]well{}}
}

// Note records what the process has seen of a cluster: what its status.rollout.wellSince says now. The first time it wakes
// who waits for clusters of the namespace: the status may say the same as before, and then nothing is written.
func (c *Clusters) Note(cluster *v1alpha1.OmniCluster) {
	if c == nil || cluster.Status.Rollout == nil {
		return
	}

	name := client.ObjectKeyFromObject(cluster)

	c.mu.Lock()
	before, found := c.known[name]
	c.known[name] = well{uid: cluster.UID, since: cluster.Status.Rollout.WellSince.DeepCopy()}
	c.mu.Unlock()

	if !found || before.uid != cluster.UID {
		c.first.Fire(cluster.Namespace)
	}
}

// Confirms reports whether a status says what the process saw last of how the cluster runs. One that is Ready and does not say
// since when it runs well is from before a run that found that it does not.
func (c *Clusters) Confirms(cluster *v1alpha1.OmniCluster) bool {
	if c == nil {
		return false
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	known, found := c.known[client.ObjectKeyFromObject(cluster)]
	status := cluster.Status

	switch {
	case !found, known.uid != cluster.UID, status.Rollout == nil, !known.since.Equal(status.Rollout.WellSince):
		return false
	default:
		return known.since != nil || !apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
	}
}

// Forget removes a cluster that does not exist any more.
func (c *Clusters) Forget(name types.NamespacedName) {
	if c == nil {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.known, name)
}

// Source is the source for a controller: find returns the objects that wait for clusters of a namespace.
func (c *Clusters) Source(find func(ctx context.Context, namespace string) []reconcile.Request) source.Source {
	return c.first.Source(find)
}
