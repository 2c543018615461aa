package omnicluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// processState is what this process keeps of a cluster from one run to the next, and loses when it ends. The runs of one cluster
// never overlap.
type processState struct {
	uid types.UID // of the cluster

	settling  keptSettling    // the destructive changes that wait for the settle time
	joining   consent.Joining // since when its documents are unchanged
	refusals  keptRefusals    // what Omni refused
	used      *string         // the hash that was approved and used last, until the status has it; nil if it has
	checked   *plan.Checked   // what is known of the template
	reverts   revertWatch     // what had to be changed back in Omni
	restored  bool            // the second writer that the status has is in reverts
	outage    time.Time       // since when a deletion cannot use Omni; zero if it can
	unmarking bool            // a deletion has asked Omni to take the mark off, and has had no answer
	admitted  admitted        // what Omni had when a turn was admitted
	tried     tried           // when the changes of a turn were tried
	unwell    time.Time       // when the cluster was last seen not to run well, or told to run another version
	logged    digest          // the plan that was logged last

	destroyed *v1alpha1.LastDestroyed // what this process had destroyed last
}

// processStates has the state of each cluster. The zero value is ready to use. It is safe for concurrent use.
type processStates struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*processState
}

// of returns the state of a cluster. Another object of the same name has a new one.
func (p *processStates) of(cluster *v1alpha1.OmniCluster) *processState {
	p.mu.Lock()
	defer p.mu.Unlock()

	name := client.ObjectKeyFromObject(cluster)
	if state := p.entries[name]; state != nil && state.uid == cluster.UID {
		return state
	}

	if p.entries == nil {
		p.entries = map[types.NamespacedName]*processState{}
	}

	p.entries[name] = &processState{uid: cluster.UID}

	return p.entries[name]
}

// forget removes the state of a cluster that does not exist any more.
func (p *processStates) forget(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.entries, name)
}
