package omnicluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// gate is what decides which part of a plan may be applied now.
type gate struct {
	suspend bool
	locked  bool // the cluster is locked in Omni
	policy  v1alpha1.ChangePolicy
	// changes and waiting are the plan's.
	changes, waiting int
	planned          string // what the condition Planned says of them
	destructive
	settled   bool // about the changes that were asked for
	settlesIn time.Duration
	approved  bool   // about those that need approval
	ask       string // how to approve, for people
}

// destructive are the destructive changes of a plan that have not begun.
type destructive struct {
	// asked are those that the documents asked for clearly enough.
	asked []plan.Change
	// unasked are those that somebody has to approve first.
	unasked []plan.Change
	// foreign says of some of those, by key, why the documents do not suffice.
	foreign map[string]string
}

// sortDestructive decides which destructive changes need approval: all of them
// unless the policy is Apply, all of them while a cluster is taken over, and
// always those of what this object did not make.
func sortDestructive(plan *plan.Plan, record known, policy v1alpha1.ChangePolicy, adopting bool) destructive {
	found := destructive{foreign: map[string]string{}}
	trusts := !adopting && (policy == v1alpha1.ChangePolicyApply || policy == "")

	for _, change := range plan.Destructive() {
		why := record.foreign(change, plan.Live)

		switch {
		case adopting:
			found.foreign[change.Key()] = "the cluster is being adopted"
		case why != "":
			found.foreign[change.Key()] = why
		}

		if trusts && why == "" {
			found.asked = append(found.asked, change)
		} else {
			found.unasked = append(found.unasked, change)
		}
	}

	return found
}

// all are the destructive changes, in no special order.
func (d destructive) all() []plan.Change { return slices.Concat(d.unasked, d.asked) }

// leave says how far an apply may go.
type leave struct {
	// Apply writes to Omni what does not destroy.
	Apply bool
	// Destroy are the destructive changes that may be made, too.
	Destroy []plan.Change
	// After is what to tell once that is done, if something is left; the zero
	// Outcome if nothing is.
	After loop.Outcome
}

// allows tells whether a destructive change may be made.
func (l leave) allows(change plan.Change) bool {
	return containsChange(l.Destroy, change)
}

// counted says how much there is to do, and what would be destroyed.
func (g gate) counted() string {
	text := countText(g.planned, len(g.all()))
	if named := nameChanges(g.all()); named != "" {
		text += " (" + named + ")"
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
	}

	return g.decideDestructive()
}

// decideDestructive is decide for a plan that may be applied: what was asked
// for waits for the settle time, the rest for an approval. The settle time is
// told first, because it ends by itself.
func (g gate) decideDestructive() leave {
	allowed := leave{Apply: true}
	waitsForApproval := len(g.unasked) > 0 && !g.approved
	waitsToSettle := len(g.asked) > 0 && !g.settled

	if !waitsForApproval {
		allowed.Destroy = append(allowed.Destroy, g.unasked...)
	}

	if !waitsToSettle {
		allowed.Destroy = append(allowed.Destroy, g.asked...)
	}

	switch {
	case waitsToSettle && waitsForApproval:
		allowed.After = loop.Wait(max(g.settlesIn, time.Millisecond), v1alpha1.ReasonWaitingToSettle,
			"%s; those that were asked for wait until they have not changed for the settle time; these wait for approval: %s; %s",
			countText(g.planned, len(g.all())), g.nameUnasked(), g.ask)
	case waitsToSettle:
		allowed.After = loop.Wait(max(g.settlesIn, time.Millisecond), v1alpha1.ReasonWaitingToSettle,
			"%s; those that destroy wait until they have not changed for the settle time", g.counted())
	case waitsForApproval:
		allowed.After = loop.Stall(v1alpha1.ReasonAwaitingApproval, "%s; these wait for approval: %s; %s",
			countText(g.planned, len(g.all())), g.nameUnasked(), g.ask)
	}

	return allowed
}

// nameUnasked names a few of the changes that need approval, and why.
func (g gate) nameUnasked() string {
	named := make([]string, 0, maxNamed)

	for _, change := range g.unasked[:min(maxNamed, len(g.unasked))] {
		text := change.String()
		if why := g.foreign[change.Key()]; why != "" {
			text += ": " + why
		}

		named = append(named, text)
	}

	return strings.Join(named, "; ") + more(len(g.unasked))
}

// howToApprove is the part of a message that says how to approve a plan, and
// that an approval is there but for another plan.
func howToApprove(cluster *v1alpha1.OmniCluster, hash string) string {
	text := ""
	if approved := cluster.Spec.ApprovedPlan; approved != "" && approved != hash {
		text = fmt.Sprintf("spec.approvedPlan (%.12s...) approves another plan, the current one is %s; ", approved, hash)
	}

	return text + fmt.Sprintf(`read status.plan, then approve it: kubectl patch omnicluster %s -n %s --type=merge -p '{"spec":{"approvedPlan":"%s"}}'`,
		cluster.Name, cluster.Namespace, hash)
}
