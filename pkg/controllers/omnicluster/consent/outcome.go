package consent

import (
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// Outcome says what the changes that may not be made wait for; the zero Outcome if
// there are none. It stays the same while the others are carried out, but for the
// hash to approve.
func (d Decision) Outcome() loop.Outcome {
	planned := d.facts.Plan

	switch {
	case d.stop == HoldSecondWriter:
		return loop.Stall(v1alpha1.ReasonSecondWriter, "%s", d.facts.SecondWriter)
	case d.stop == HoldLocked:
		return loop.Stall(v1alpha1.ReasonRemoteLocked,
			"the cluster is locked in Omni (annotation omni.sidero.dev/cluster-locked) and only observed; unlock it there")
	case d.stop == HoldSuspended && !planned.Empty():
		return loop.Wait(0, v1alpha1.ReasonSuspended, "%s; spec.suspend is set, nothing is applied", d.summaryWithNames())
	case d.stop == HoldObserved && len(planned.Changes) > 0:
		return loop.Stall(v1alpha1.ReasonObserving, "%s; the change policy is Observe, nothing is applied", d.summaryWithNames())
	case !d.MayApply():
		return loop.Outcome{}
	}

	return d.destructiveOutcome()
}

// destructiveOutcome is Outcome for a plan that may be applied: what was asked for
// waits for the settle time, the rest for an approval. The settle time is told first,
// because it ends by itself.
func (d Decision) destructiveOutcome() loop.Outcome {
	unasked := d.needing(NeedsApproval)
	waitsForApproval := len(unasked) > 0 && !d.approved
	waitsToSettle := len(d.needing(NeedsSettling)) > 0 && !d.settled
	settlesIn := max(d.Settling.remaining(d.facts.Now, d.facts.SettleTime), time.Millisecond)

	switch {
	case waitsToSettle && waitsForApproval:
		return loop.Wait(settlesIn, v1alpha1.ReasonWaitingToSettle,
			"%s; those that were asked for wait until they have not changed for the settle time; these wait for approval: %s; %s",
			d.summary(), d.nameUnasked(), d.howToApprove())
	case waitsToSettle:
		return loop.Wait(settlesIn, v1alpha1.ReasonWaitingToSettle,
			"%s; those that destroy wait until they have not changed for the settle time", d.summaryWithNames())
	case waitsForApproval:
		return loop.Stall(v1alpha1.ReasonAwaitingApproval, "%s; these wait for approval: %s; %s", d.summary(), d.nameUnasked(), d.howToApprove())
	default:
		return loop.Outcome{}
	}
}

// Summary is what the condition Planned says: how much there is to do, and whose
// cluster is about to be taken over.
func (d Decision) Summary() string { return Summary(d.facts.Plan) + d.facts.Claim.Takeover() }

// summary says how much there is to do, and how much of it destroys something.
func (d Decision) summary() string {
	text := Summary(d.facts.Plan)
	if count := len(d.destructive()); count > 0 {
		text = fmt.Sprintf("%s (%d destructive)", text, count)
	}

	return text
}

// summaryWithNames says, too, what would be destroyed.
func (d Decision) summaryWithNames() string {
	text := d.summary()
	if named := ChangeNames(d.destructive()); named != "" {
		text += " (" + named + ")"
	}

	return text
}

// nameUnasked names a few of the changes that need approval, and why.
func (d Decision) nameUnasked() string {
	var named []string

	for _, item := range d.Items {
		if item.Needs != NeedsApproval {
			continue
		}

		text := item.Change.String()
		if item.Foreign != "" {
			text += ": " + item.Foreign
		}

		named = append(named, text)
	}

	return few(named, "; ")
}

// howToApprove is the part of a message that says how to approve a plan, and
// that an approval is there but for another plan.
func (d Decision) howToApprove() string { return howToApprove(d.facts.Cluster, d.Hash()) }

func howToApprove(cluster *v1alpha1.OmniCluster, hash string) string {
	text := ""
	if approved := cluster.Spec.ApprovedPlan; approved != "" && approved != hash {
		text = fmt.Sprintf("spec.approvedPlan (%.12s...) approves another plan, the current one is %s; ", approved, hash)
	}

	return text + fmt.Sprintf(`read status.plan, then approve it: kubectl patch omnicluster %s -n %s --type=merge -p '{"spec":{"approvedPlan":"%s"}}'`,
		cluster.Name, cluster.Namespace, hash)
}
