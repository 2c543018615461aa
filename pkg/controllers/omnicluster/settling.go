package omnicluster

import "omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"

// keptSettling is what is kept of the settle times of a cluster from one run to the next.
type keptSettling struct {
	consent.Settling

	documents  string // their generations, when the last plan was made
	turnedAway bool   // a run since then got no slot
}

// settlingOf returns the settle times that the last plan left. They begin anew if documents changed while runs got no
// slot: such a run does not see that a document came back.
func (r *reconciler) settlingOf(s *scope) consent.Settling {
	kept := r.processStates.of(s.cluster).settling
	if kept.turnedAway && kept.documents != generationsOf(s) {
		return consent.Settling{}
	}

	return kept.Settling
}

// keepSettling stores the settle times of a plan.
func (r *reconciler) keepSettling(s *scope, next consent.Settling) {
	kept := keptSettling{Settling: next}
	if next.Has() {
		kept.documents = generationsOf(s)
	}

	r.processStates.of(s.cluster).settling = kept
}

// settleWithoutPlan ends the settle times in a run without a plan: a resource that was to be destroyed before a gap may
// have come back during it. Waiting for our own writes to be seen is no gap, nor is waiting for a slot: with more
// clusters than slots, the settle time would never end.
func (r *reconciler) settleWithoutPlan(s *scope) {
	kept := &r.processStates.of(s.cluster).settling

	switch {
	case s.behind:
	case s.turnedAway && kept.Has():
		kept.turnedAway = true
	default:
		*kept = keptSettling{}
	}
}
