package omnicluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// scope is what the phases of one run share: the object, the session with Omni, and the result of each phase. A phase stores
// its result here for later phases and for the status, even if it does not continue. Until then it is nil.
type scope struct {
	cluster *v1alpha1.OmniCluster
	name    string         // of the cluster in Omni
	input   template.Input // the documents that name the cluster

	connection *v1alpha1.OmniConnection
	hubs       hubs.Hubs // whose marks count as ours
	lease      *session.Lease
	behind     bool // our own last writes are not to be seen yet
	turnedAway bool // all slots of the connection were taken
	postponed  bool // the status of this run is not written

	seen      *seen               // by connect
	documents *template.Documents // by assemble
	rendered  *rendered           // by validate
	gate      consent.Gate        // by makePlan
	plan      *plan.Plan          // by makePlan
	moved     map[string]string   // by sync: see movedSets
	synced    *synced             // by sync
	remote    *observe.Status     // by checkAvailable, or by the report
}

// seen is the cluster in Omni as the run found it.
type seen struct {
	live     omni.Live
	owner    consent.OwnerState // of the object whose mark the cluster carries
	adopting bool               // every destroy has to be approved, as long as the plan is not empty
}

// rendered is the template that the documents make.
type rendered struct {
	template *plan.Template
	hash     string
	secrets  *SecretTexts // what it got from Secrets
}

// synced is the result of applying a plan.
type synced struct {
	consent.Decision
	taken    []plan.Change // what Omni took in this run
	refusals []refusal     // what Omni refuses of it
	unshown  error         // why the local copy does not show yet what this run wrote
	complete bool          // Omni has what the documents say
}

// owns reports whether a cluster in Omni carries this object's mark.
func (s *scope) owns(live omni.Live) bool { return live.Exists && s.isMark(live.Marks) }

// isMark reports whether a mark is this object's.
func (s *scope) isMark(marks omni.Marks) bool {
	return consent.IsMark(marks, string(s.cluster.UID), s.hubs)
}

// wrote reports whether Omni took a change in this run.
func (s *scope) wrote() bool { return s.synced != nil && len(s.synced.taken) > 0 }

// processState is what this process keeps of a cluster from one run to the next, and loses when it ends: after a
// restart, changes wait for their whole settle time again. The runs of one cluster never overlap.
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
