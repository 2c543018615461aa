package omnicluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// blockedAfter is how long machines may take to leave before a deletion counts as blocked. Omni takes about as long to
// notice that a machine has died (275 s, measured).
const blockedAfter = 5 * time.Minute

// describeProgress returns the message about what a destruction waits for, since when, and what helps. The destruction
// counts as blocked when a machine cannot be reached, or when it takes long.
func describeProgress(name string, progress observe.DeleteProgress, destroyMachines bool, now time.Time) loop.Outcome {
	message := fmt.Sprintf("cluster %q is being destroyed in Omni%s", name, since(progress.Since))

	switch {
	case len(progress.Blockers) > 0:
		message += "; it waits for " + nameBlockers(progress.Blockers)
	case len(progress.Finalizers) > 0:
		message += "; it waits for Omni's own clean-up: " + consent.Names(progress.Finalizers)
	}

	long := progress.TearingDown && now.Sub(progress.Since) > blockedAfter

	unreachable, poweredOff := countUnreachable(progress.Blockers), machinesPoweredOff(progress.Blockers)

	switch silent := unreachable - len(poweredOff); {
	case silent > 0 && destroyMachines:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. A machine that is not connected cannot be reset; because spec.deletePolicy.destroyMachines is set it is removed from Omni "+
				"as it is, as soon as Omni counts it as disconnected (about 5 minutes after it fell silent)%s", message, aboutPoweredOff(poweredOff))
	case silent > 0:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. A machine that is not connected cannot be reset, and Omni waits for it without end: bring it back, "+
				"or set spec.deletePolicy.destroyMachines: true to have it removed from Omni as it is%s", message, aboutPoweredOff(poweredOff))
	case unreachable > 0:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. A machine that is not connected cannot be reset%s", message, aboutPoweredOff(poweredOff))
	case long && len(progress.Blockers) > 0:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines,
			"%s. All of them are connected: look at what they do in Omni", message)
	case long:
		return loop.Block(deletionPoll, v1alpha1.ReasonWaitingForMachines, "%s", message)
	}

	return loop.Wait(deletionPoll, v1alpha1.ReasonDeleting, "%s", message)
}

// leavingMachines returns the end of a message that names the machines that leave, and says what helps.
func leavingMachines(machines []observe.Blocker) string {
	if len(machines) == 0 {
		return ""
	}

	text := "; leaving: " + nameBlockers(machines)
	if countUnreachable(machines) > 0 {
		text += ". A machine that is not connected cannot be reset, and Omni waits for it: bring it back, or remove it in Omni"
	}

	if slices.ContainsFunc(machines, func(machine observe.Blocker) bool { return machine.Connected && machine.Waits }) {
		text += ". Omni has not begun with each of them: it takes a machine out of the control plane while the load balancer is healthy and etcd " +
			"keeps its quorum without it (look at etcd on the others), and one out of a worker set when its turn comes"
	}

	return text
}

// nameLeaving adds to the message about a cluster that stays in Omni the machines that it loses: disconnected ones, whose
// removal this deletion requested before it was told to keep the cluster, and those that left already. It asks Omni itself:
// nobody says it later, and the local copy may not show yet what was requested a moment ago.
func (r *reconciler) nameLeaving(ctx context.Context, s *scope, outcome loop.Outcome) loop.Outcome {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	machines, err := observe.Leaving(ctx, s.lease.Live(), s.name)
	if err != nil || len(machines) == 0 {
		return outcome
	}

	return consent.Released("%s; these leave it all the same, as was requested before: %s", outcome.Message(), nameBlockers(machines))
}

// nameBlockers lists the first machines that something waits for.
func nameBlockers(blockers []observe.Blocker) string {
	named := make([]string, 0, len(blockers))

	for _, blocker := range blockers {
		text := "machine " + blocker.Machine
		if !blocker.Connected {
			text += " (not connected)"
		}

		named = append(named, text+since(blocker.Since))
	}

	return consent.Names(named)
}

func since(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}

	return " since " + words.Time(moment)
}

// machinesPoweredOff returns the machines that Omni never counts as disconnected while they are off.
func machinesPoweredOff(blockers []observe.Blocker) []string {
	var off []string

	for _, blocker := range blockers {
		if blocker.PoweredOff {
			off = append(off, blocker.Machine)
		}
	}

	return off
}

// aboutPoweredOff returns the end of a message that says what helps with machines that are powered off; empty without any.
func aboutPoweredOff(machines []string) string {
	if len(machines) == 0 {
		return ""
	}

	return fmt.Sprintf(". Omni knows these as powered off and does not count them as disconnected, so that destroyMachines does not remove them: %s. "+
		"Power such a machine on, or take it out of Omni: omnictl delete link UUID", consent.Names(machines))
}

func countUnreachable(blockers []observe.Blocker) int {
	return len(slices.DeleteFunc(slices.Clone(blockers), func(blocker observe.Blocker) bool { return blocker.Connected }))
}
