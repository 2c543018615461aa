package consent

import (
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// Facts are what decides how far a plan may be applied now.
type Facts struct {
	// Cluster is the object: what its spec wants, and what its status remembers.
	Cluster *v1alpha1.OmniCluster
	// Claim is about the cluster in Omni, which is this object's to change.
	Claim Claim
	// Adopting is true if every destroy has to be approved; see Claim.IsAdopting.
	Adopting bool
	// Plan is what has to change.
	Plan *plan.Plan
	// SecondWriter says who else writes the cluster; empty: nobody is known.
	SecondWriter string
	// Gate is what the rollout policies say.
	Gate Gate
	// Settling is that of the last run, and SettleTime how long it takes.
	Settling   Settling
	SettleTime time.Duration
	// Now is the time of the run.
	Now time.Time
}

// Decision says of every change of a plan whether it may be made, and of which it was.
type Decision struct {
	// Items are the changes, in the plan's order; those that wait for Omni come last.
	Items []Item
	// Settling is for the next run.
	Settling Settling
	// Approved are the approvals to remember.
	Approved []v1alpha1.ApprovedChange

	facts     Facts
	record    Record
	stop      Hold       // of the whole plan
	settled   bool       // those that need it
	approved  bool       // those that need it
	admission *admission // nil if no rollout is concerned
	applied   bool
}

// Decide decides how far a plan may be applied. Whatever is not known is the safer
// choice: nothing is destroyed.
func Decide(f Facts) Decision {
	spec := f.Cluster.Spec
	d := Decision{facts: f, stop: f.stop(), record: RecordOf(f.Cluster.Status, f.Claim.Live)}
	d.Items = itemsOf(f.Plan, d.record, spec.ChangePolicy, f.Adopting)

	var settling []string

	// The settle time begins anew when a suspension ends, or a second writer is gone.
	if !spec.Suspend && f.SecondWriter == "" {
		for _, change := range d.needing(NeedsSettling) {
			settling = append(settling, change.Key())
		}
	}

	d.Settling = f.Settling.settle(f.Cluster.UID, settling, f.Now, f.SettleTime)
	d.settled = d.Settling.settled
	d.approved, d.Approved = approve(spec.ApprovedPlan, f.Plan, d.needing(NeedsApproval), approvals(f.Cluster.Status))

	return d.judged().withGate()
}

// EveryChange is the decision for a plan that was asked for as a whole: the
// destruction of a cluster.
func EveryChange(planned *plan.Plan) Decision {
	return Decision{facts: Facts{Plan: planned}, Items: itemsOf(planned, Record{}, v1alpha1.ChangePolicyApply, false)}
}

// stop is what keeps the whole plan from being applied.
func (f Facts) stop() Hold {
	switch spec := f.Cluster.Spec; {
	case f.SecondWriter != "":
		return HoldSecondWriter
	case spec.Suspend:
		return HoldSuspended
	case f.Claim.Live.Locked:
		return HoldLocked
	case spec.ChangePolicy == v1alpha1.ChangePolicyObserve:
		return HoldObserved
	default:
		return HoldNone
	}
}

// judged gives every item its state.
func (d Decision) judged() Decision {
	d.Items = slices.Clone(d.Items)

	for i := range d.Items {
		if item := &d.Items[i]; item.Hold != HoldOmni {
			item.State, item.Hold = d.judge(item.Needs)
		}
	}

	return d
}

func (d Decision) judge(needs Need) (State, Hold) {
	switch {
	case d.stop != HoldNone:
		return Held, d.stop
	case needs == NeedsApproval && !d.approved:
		return Held, HoldApproval
	case needs == NeedsSettling && !d.settled:
		return Held, HoldSettling
	default:
		return Planned, HoldNone
	}
}

// MayApply reports whether what destroys nothing may be written to Omni, and does not wait for its turn.
func (d Decision) MayApply() bool {
	return d.stop == HoldNone && len(d.facts.Plan.Changes) > len(d.Waiting())
}

// Destroys are the destructive changes that may be made now.
func (d Decision) Destroys() []plan.Change {
	return d.where(func(item Item) bool { return item.State == Planned && item.Needs != NeedsNothing })
}

// MayDestroy reports whether a destructive change may be made now. It is
// plan.ApplyOptions.Consent.
func (d Decision) MayDestroy(change plan.Change) bool { return containsChange(d.Destroys(), change) }

// Unstored reports whether the status does not say yet what has to be known after a
// crash, before Omni is written to: where the cluster is or may be, because a deletion
// would not look for it otherwise; that it is taken over, because what was there is
// not drift; and what was approved of what is about to be destroyed.
func (d Decision) Unstored() bool {
	status := d.facts.Cluster.Status

	return status.Endpoint == "" || d.facts.Adopting && !status.Adopting || !isRemembered(status, d.Approved, d.Destroys()) ||
		d.Begins() && d.before().Hash != d.admission.next.Hash || d.Begins() && d.before().State != v1alpha1.RolloutAdmitted
}

// Tried reports whether whatever may be applied was tried.
func (d Decision) Tried() bool { return d.applied || !d.MayApply() && d.stop != HoldSecondWriter }

// Follows reports whether Omni was made to follow the documents: nothing but they
// decide.
func (d Decision) Follows() bool { return d.stop == HoldNone && d.Tried() }

// Claim is what decided whose the cluster is.
func (d Decision) Claim() Claim { return d.facts.Claim }

// NextRecord is what to remember of what Omni has from this object. With grow false
// nothing new is recorded.
func (d Decision) NextRecord(grow bool) Record { return d.record.Next(d.facts.Plan, d.Left(), grow) }

// Grows reports whether a record holds more than the one that was decided by.
func (d Decision) Grows(next Record) bool { return next.Exceeds(d.record) }
