package omnicluster

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

// gate is what decides which part of a plan may be applied now.
type gate struct {
	suspend bool
	locked  bool // the cluster is locked in Omni
	policy  v1alpha1.ChangePolicy
	// changes and waiting are the plan's; destructive are those of its changes that need leave.
	changes, waiting, destructive int
	named                         string // the destructive changes, for people
	settled                       bool
	settlesIn                     time.Duration
	approved                      bool
}

// leave says how far an apply may go.
type leave struct {
	// Apply writes to Omni what does not destroy.
	Apply bool
	// Destructive writes the rest, too.
	Destructive bool
	// After is what to tell once that is done, if something is left; the zero
	// Outcome if nothing is.
	After loop.Outcome
}

// counted says how much there is to do, and what would be destroyed.
func (g gate) counted() string {
	text := countText(g.changes, g.destructive)
	if g.named != "" {
		text += " (" + g.named + ")"
	}

	return text
}

// decide opens the gate as far as the object's policy allows. Whatever is not
// known is the safer choice: nothing is destroyed.
func (g gate) decide() leave {
	switch {
	case g.suspend && g.changes+g.waiting > 0:
		return leave{After: loop.Wait(0, v1alpha1.ReasonSuspended, "%s; spec.suspend is set, nothing is applied", g.counted())}
	case g.suspend:
		return leave{}
	case g.locked:
		return leave{After: loop.Stall(v1alpha1.ReasonRemoteLocked,
			"the cluster is locked in Omni (annotation omni.sidero.dev/cluster-locked) and only observed; unlock it there")}
	case g.policy == v1alpha1.ChangePolicyObserve && g.changes > 0:
		return leave{After: loop.Stall(v1alpha1.ReasonObserving, "%s; the change policy is Observe, nothing is applied", g.counted())}
	case g.policy == v1alpha1.ChangePolicyObserve:
		return leave{}
	case g.changes == 0:
		return leave{}
	case g.destructive == 0:
		return leave{Apply: true}
	}

	return g.decideDestructive()
}

// decideDestructive is decide for a plan with destructive changes.
func (g gate) decideDestructive() leave {
	switch g.policy {
	case v1alpha1.ChangePolicyApply, "":
		if g.settled {
			return leave{Apply: true, Destructive: true}
		}

		return leave{Apply: true, After: loop.Wait(max(g.settlesIn, time.Millisecond), v1alpha1.ReasonWaitingToSettle,
			"%s; those that destroy wait until they have not changed for the settle time", g.counted())}
	case v1alpha1.ChangePolicyConfirmDestructive:
		if g.approved {
			return leave{Apply: true, Destructive: true}
		}

		fallthrough
	default:
		return leave{Apply: true, After: loop.Stall(v1alpha1.ReasonAwaitingApproval,
			"%s; those that destroy wait for spec.approvedPlan to equal status.plan.hash", g.counted())}
	}
}

// approve decides whether the destructive changes of a plan are approved, and
// which approvals to remember: those of a plan whose hash was approved, until
// they are gone. What is left of them later stays approved.
func approve(approvedPlan string, plan *omni.Plan, remembered []v1alpha1.ApprovedChange) (approved bool, remember []v1alpha1.ApprovedChange) {
	gated := plan.Destructive()
	if len(gated) == 0 {
		return false, stillThere(plan.Changes, remembered)
	}

	if approvedPlan != "" && approvedPlan == plan.Hash {
		for _, change := range gated {
			remember = append(remember, approvalOf(change))
		}

		return true, remember
	}

	keys := approvalKeys(remembered)
	for _, change := range gated {
		if !slices.Contains(keys, approvalKey(approvalOf(change))) {
			return false, stillThere(plan.Changes, remembered)
		}
	}

	return true, stillThere(plan.Changes, remembered)
}

// stillThere keeps the approvals of resources that are still to be destroyed or
// shrunk, or whose destruction is not over.
func stillThere(changes []omni.Change, remembered []v1alpha1.ApprovedChange) []v1alpha1.ApprovedChange {
	var kept []v1alpha1.ApprovedChange

	for _, approval := range remembered {
		if slices.ContainsFunc(changes, func(change omni.Change) bool {
			return change.Destructive && approvalKey(approvalOf(change)) == approvalKey(approval)
		}) {
			kept = append(kept, approval)
		}
	}

	return kept
}

func approvalOf(change omni.Change) v1alpha1.ApprovedChange {
	approval := v1alpha1.ApprovedChange{Type: change.Type, ID: change.ID, OldSize: change.OldSize, NewSize: change.NewSize}

	if !change.Created.IsZero() {
		// The API keeps whole seconds.
		approval.Created = &metav1.Time{Time: change.Created.UTC().Truncate(time.Second)}
	}

	return approval
}

func approvalKeys(approvals []v1alpha1.ApprovedChange) []string {
	keys := make([]string, 0, len(approvals))
	for _, approval := range approvals {
		keys = append(keys, approvalKey(approval))
	}

	return keys
}

func approvalKey(approval v1alpha1.ApprovedChange) string {
	created := ""
	if approval.Created != nil {
		created = shownTime(approval.Created.Time)
	}

	return strings.Join([]string{approval.Type, approval.ID, created, approval.OldSize, approval.NewSize}, "|")
}
