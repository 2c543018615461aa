package omnicluster

import (
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
