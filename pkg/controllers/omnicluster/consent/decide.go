// Package consent decides whether a change may be made, for the controller of OmniCluster. It is pure: it reads and
// writes nothing, and has no clock; the caller passes the time.
//
// Decide makes one list of items of a plan. Each item has the change, its state, and what it waits for. What may be
// destroyed, the hash to approve, status.plan, the events and the messages are filters over that list.
//
//	facts -> Decide -> items -> [Apply] -> After -> items
//
// Two further decisions come before a plan: to whom the cluster belongs (Claim), and the next step of a deletion
// (Deletion).
package consent

import (
	"fmt"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Facts decide how far a plan may be applied now.
type Facts struct {
	// Cluster is the object: its spec has the desired state, and its status what earlier runs recorded.
	Cluster *v1alpha1.OmniCluster
	// Claim describes the cluster in Omni, which belongs to this object.
	Claim Claim
	// Adopting is true if every destroy needs an approval; see Claim.IsAdopting.
	Adopting bool
	// NamespaceGoes is true if the namespace is being deleted. Documents that are gone are no wish then: nothing is written
	// but what is approved, and no half of a replacement. NamespaceUnknown says for messages why that is not known; then it
	// counts for what destroys.
	NamespaceGoes    bool
	NamespaceUnknown string
	// Moved are the recorded machine sets whose OmniWorkers names another OmniCluster now: its name by the set's ID.
	Moved map[string]string
	// Workers are the names of the OmniWorkers that ask for sets now, by the set's ID: such a set has not moved, or is back.
	Workers map[string]string
	// Plan has the changes to make.
	Plan *plan.Plan
	// Slips says for messages, by machine set, why a destruction looks like a slip. It decides nothing.
	Slips map[string]string
	// SecondWriter describes who else writes the cluster; empty if nobody is known.
	SecondWriter string
	// Gate has the conditions of the rollout policies.
	Gate Gate
	// Settling has the settle times that the last run recorded, and SettleTime is how long one lasts. Deleted is when a
	// document in the namespace was deleted last.
	Settling   Settling
	SettleTime time.Duration
	Deleted    time.Time
	// Documents identifies the documents and what they refer to. Joining is what the last run recorded of them, and JoinSettleTime is how
	// long they must be unchanged before a machine joins.
	Documents      string
	Joining        Joining
	JoinSettleTime time.Duration
	// Now is the time of the run.
	Now time.Time
}

// Decision has the state of every change of a plan: whether it may be made, and later whether it was.
type Decision struct {
	// Items are the changes, in the plan's order; those that wait for Omni come last.
	Items []Item
	// Settling and Joining are for the next run.
	Settling Settling
	Joining  Joining
	// Approved are the approvals to remember.
	Approved []v1alpha1.ApprovedChange

	facts        Facts
	record       Record
	holdOfAll    Hold       // of the whole plan
	lacking      string     // why not even an approval lets a change destroy something; empty if it does
	allSettled   bool       // every change that needs the settle time had it
	allApproved  bool       // every change that needs an approval has it
	machinesWait bool       // machines do not join yet, because documents may still arrive
	admission    *admission // nil if no rollout is concerned
	applied      bool
	created      map[string]time.Time // when Omni made what the Apply created, by ID
}

// Decide decides how far a plan may be applied. If a fact is unknown, it makes the safer choice and destroys nothing.
func Decide(f Facts) Decision {
	spec := f.Cluster.Spec
	d := Decision{
		facts: f, holdOfAll: f.holdOfAll(), lacking: f.lacking(), record: RecordOf(f.Cluster.Status, f.Claim.Live).WithMoved(f.Moved).WithWorkers(f.Workers),
	}
	d.Items = itemsOf(f.Plan, d.record, spec.ChangePolicy, f.whyUntrusted())

	var settling []string

	// Nothing settles while nothing may be written: the status does not say then that these changes wait for a time. The
	// settle time begins when that ends: a suspension, a lock, Observe, a second writer.
	if d.holdOfAll == HoldNone {
		for _, change := range d.needing(NeedsSettling) {
			settling = append(settling, change.Key())
		}
	}

	joins := slices.ContainsFunc(f.Plan.Changes, func(change plan.Change) bool { return change.BringsMachines() && !d.leavesAlone(change) })
	d.Joining = f.Joining.next(f.Documents, joins, f.Now, f.JoinSettleTime)
	d.machinesWait = joins && !d.Joining.open

	d.Settling = f.Settling.settle(f.Cluster.UID, settling, f.Deleted, f.Now, f.SettleTime)
	d.allSettled = d.Settling.settled
	d.allApproved, d.Approved = approve(spec.ApprovedPlan, f.Cluster.Status.UsedApproval, f.Plan, d.needing(NeedsApproval), approvals(f.Cluster.Status))

	d = d.withStates()
	if f.Gate.Holds() || f.Cluster.Status.Rollout != nil {
		d = d.withGate()
	}

	return d
}

// whyUntrusted returns, for messages, why no document is enough for a destructive change; empty if that depends on the change.
func (f Facts) whyUntrusted() string {
	switch {
	case f.Adopting:
		return "the cluster is being adopted"
	case f.NamespaceGoes:
		return "its namespace is being deleted"
	default:
		return f.NamespaceUnknown
	}
}

// holdOfAll returns the hold that applies to the whole plan.
func (f Facts) holdOfAll() Hold {
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

// withStates returns the decision with the states of its items, as far as no rollout policy holds them.
func (d Decision) withStates() Decision {
	d.Items = slices.Clone(d.Items)

	for i := range d.Items {
		if item := &d.Items[i]; item.Hold != HoldOmni || item.waitsForUpgrade() && d.holdOfAll != HoldNone {
			item.State, item.Hold = d.stateOf(*item)
		}
	}

	return d
}

func (d Decision) stateOf(item Item) (State, Hold) {
	switch {
	case d.holdOfAll != HoldNone:
		return Held, d.holdOfAll
	case d.leavesAlone(item.Change):
		return Held, HoldNamespace
	case d.waitsForDocuments(item.Change):
		return Held, HoldDocuments
	case item.Needs == NeedsApproval && !d.allApproved:
		return Held, HoldApproval
	case item.Needs == NeedsSettling && !d.allSettled:
		return Held, HoldSettling
	case d.machinesWait && item.Needs != NeedsNothing: // what comes may take the place of what goes
		return Held, HoldDocuments
	default:
		return Planned, HoldNone
	}
}

// HasChangesToTry reports whether the plan has changes to go through, besides those that wait for a turn or for documents, or stay as
// they are. All of them may wait for an approval.
func (d Decision) HasChangesToTry() bool {
	return d.holdOfAll == HoldNone && len(d.facts.Plan.Changes) > len(d.WaitingForTurn())+len(d.leftAlone())+len(d.waitingForDocuments())
}

// Destroys returns the changes that may be made now and needed consent.
func (d Decision) Destroys() []plan.Change {
	return d.where(func(item Item) bool { return item.State == Planned && item.Needs != NeedsNothing })
}

// MayDestroy reports whether a change that needs consent may be made now. It is plan.ApplyOptions.Consent.
func (d Decision) MayDestroy(change plan.Change) bool { return containsChange(d.Destroys(), change) }

// Unstored reports whether the status still lacks a fact that must survive a crash, before anything is written to Omni:
// where the cluster is or may be, because otherwise a deletion would not look for it; that it is adopted, because
// existing settings are not drift; and which of the destroys that are about to be made were approved.
func (d Decision) Unstored() bool {
	status := d.facts.Cluster.Status

	return status.Endpoint == "" || d.facts.Adopting && !status.Adopting || !isRemembered(status, d.Approved, d.Destroys()) || d.isAdmission()
}

// Tried reports whether every change that may be applied was tried.
func (d Decision) Tried() bool {
	return d.applied || !d.HasChangesToTry() && d.holdOfAll != HoldSecondWriter
}

// Follows reports whether Omni follows the documents alone.
func (d Decision) Follows() bool {
	return d.holdOfAll == HoldNone && !d.facts.NamespaceGoes && d.Tried()
}

// Claim returns the facts that decided whose the cluster is.
func (d Decision) Claim() Claim { return d.facts.Claim }

// NextRecord returns the record of what Omni has from this object, for the status. With grow false it adds only what the Apply
// created: that this object made it is true, whatever its documents say by now.
func (d Decision) NextRecord(grow bool) Record {
	made := d.where(func(item Item) bool {
		return item.Took && item.State == Done && item.Change.Action == plan.ActionCreate
	})

	return d.record.Next(d.facts.Plan, d.Left(), growth{all: grow, made: made, at: d.created})
}

// Grows reports whether a record holds more than the record that this decision is based on.
func (d Decision) Grows(next Record) bool { return next.Exceeds(d.record) }

// leavesAlone reports whether a change is not made because the namespace is being deleted: documents without a finalizer go
// before the OmniCluster, which may stay, and its machines would lose their settings. A destructive change can be approved,
// unless only half of what was approved would be made. What Omni has begun is finished.
func (d Decision) leavesAlone(change plan.Change) bool {
	return d.facts.NamespaceGoes && !change.TearingDown && (!change.Destructive || d.lacking != "")
}

// lacking returns, for messages, what a destructive change would lack in a namespace that is being deleted, because it is not
// made any more: what may take the place of what goes, so that etcd would lose a member, or a renamed set its machines; or
// the mark, which comes before everything else in a cluster. Empty if nothing is lacking. Which destruction belongs to
// which addition is nowhere said, so one addition holds them all.
func (f Facts) lacking() string {
	live := f.Claim.Live

	switch added, adds := f.Plan.Addition(); {
	case !f.NamespaceGoes:
		return ""
	case live.Exists && (!f.Claim.Owned() || live.Marks.Hub != f.Claim.Hubs.Own):
		return "the cluster in Omni does not carry this object's mark, which is not written any more"
	case adds:
		return "what would take the place of what goes is not made (" + added.String() + ")"
	default:
		return ""
	}
}

// leftAlone returns the changes that are not made because the namespace is being deleted.
func (d Decision) leftAlone() []plan.Change {
	return d.where(func(item Item) bool { return item.Hold == HoldNamespace })
}

// JudgeControlPlane decides whether a plan may make the control plane of a cluster that had one. Whoever deleted it in Omni deleted
// etcd, too, and Omni makes a new one: an empty one, although there may be backups, or the one of an old backup that the document still
// names. So that waits for a person, unless the document names a backup that the control plane was not made from: this is the request
// to restore it. A document that is older than the control plane asks for nothing new: somebody has restored another backup in Omni
// since. document is the OmniControlPlane. The outcome continues if nothing has to be asked, also while nothing is written.
func JudgeControlPlane(cluster *v1alpha1.OmniCluster, document *v1alpha1.OmniControlPlane, claim Claim, planned *plan.Plan) loop.Outcome {
	lost, spec := cluster.Status.ControlPlaneSet, cluster.Spec

	switch {
	case !planned.MakesControlPlane, lost == nil, claim.Live.UUID == "", claim.Live.UUID != claim.KnownID: // it is the first one
		return loop.Proceed()
	case planned.Backup != "" && planned.Backup != lost.Backup && !document.CreationTimestamp.Time.Before(lost.Created.Time):
		return loop.Proceed()
	case claim.Recreate == allowsControlPlane(lost):
		return loop.Proceed()
	case spec.Suspend, spec.ChangePolicy == v1alpha1.ChangePolicyObserve: // the plan shows what would be made
		return loop.Proceed()
	default:
		return loop.Stall(v1alpha1.ReasonControlPlaneGone, "%s", controlPlaneGone(cluster, claim.Name, planned.Backup))
	}
}

// allowsControlPlane returns the value of the annotation that allows this control plane to be made again. The next one has another
// time, so a value that stays in Git allows nothing a second time.
func allowsControlPlane(lost *v1alpha1.ControlPlaneSet) string {
	return v1alpha1.RecreateControlPlanePrefix + words.Time(lost.Created.Time)
}

// controlPlaneGone returns the message about a control plane that Omni has no more: what happened, and what to do. backup is what it
// would be made from.
func controlPlaneGone(cluster *v1alpha1.OmniCluster, name, backup string) string {
	lost := cluster.Status.ControlPlaneSet

	other, again := "", "with an empty etcd, without anything that the cluster's Kubernetes had"
	if backup != "" {
		other, again = " that names another one", fmt.Sprintf("from backup %q, without anything that is newer", backup)
	}

	return fmt.Sprintf("Omni no longer has the control plane of cluster %q (MachineSet %q, made at %s), and etcd went with it; nothing is changed. "+
		"To restore etcd from a backup, put an OmniControlPlane with spec.bootstrapSpec%s in the place of the present one. "+
		"To make the control plane again %s: kubectl annotate omnicluster %s -n %s --field-manager=%s --overwrite %s=%s",
		name, name+"-"+v1alpha1.ControlPlaneSetName, words.Time(lost.Created.Time), other,
		again, cluster.Name, cluster.Namespace, v1alpha1.FieldManagerByHand, v1alpha1.AnnotationRecreate, allowsControlPlane(lost))
}
