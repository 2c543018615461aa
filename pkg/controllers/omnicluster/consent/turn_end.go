package consent

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// giveBack says of a ticket that cannot be used that the turn is over.
func (d Decision) giveBack(next *v1alpha1.OmniClusterRollout) {
	if ticket := d.facts.Gate.Ticket; ticket != nil && !d.isUsed(*ticket, next) {
		d.end(next, ticket.Hash, v1alpha1.RolloutReturned)
	}
}

func (d Decision) isUsed(ticket v1alpha1.RolloutTicket, status *v1alpha1.OmniClusterRollout) bool {
	last := status.Last

	return last != nil && last.Hash == ticket.Hash && !last.Time.Time.Before(ticket.Since.Time)
}

// end notes how a turn ended. That is never before its ticket was given, whatever the clock says: the ticket would stay for
// ever.
func (d Decision) end(next *v1alpha1.OmniClusterRollout, hash string, result v1alpha1.RolloutOutcome) {
	next.Last = &v1alpha1.RolloutResult{Hash: hash, Result: result, Time: d.now()}

	if ticket := d.facts.Gate.Ticket; ticket != nil && ticket.Hash == hash && next.Last.Time.Before(&ticket.Since) {
		next.Last.Time = ticket.Since
	}
}

// now is the time of the run as the API keeps it.
func (d Decision) now() metav1.Time {
	return metav1.Time{Time: d.facts.Now.UTC().Truncate(time.Second)}
}

// stopped is for a cluster that is suspended, locked or only observed: it asks for nothing. What was written goes on in
// Omni; a turn of which nothing was is over.
func (d Decision) stopped(next *v1alpha1.OmniClusterRollout, before v1alpha1.OmniClusterRollout) *v1alpha1.OmniClusterRollout {
	if before.State == v1alpha1.RolloutAdmitted && d.wrote(before) {
		inTurn(next, before)

		return next
	}

	if before.State == v1alpha1.RolloutAdmitted {
		d.end(next, before.Hash, v1alpha1.RolloutReturned)
	}

	d.giveBack(next)

	return next
}

// inTurn says that a turn goes on.
func inTurn(next *v1alpha1.OmniClusterRollout, before v1alpha1.OmniClusterRollout) {
	next.State, next.Hash, next.Kinds, next.Changes = before.State, before.Hash, before.Kinds, before.Changes
	next.AdmittedSince, next.HeldSince, next.ChangedSince = before.AdmittedSince, before.HeldSince, before.ChangedSince
}
