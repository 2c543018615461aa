package clusteraccess

import (
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// longestCleanup is how long a deletion waits for a cluster that should exist and does not answer. Upgrades and repairs
// take less time, and a deletion must not wait for ever.
const longestCleanup = time.Hour

// shortestCleanup is how long this process tries at least, whatever the deadline: one bad answer of an API that is
// overloaded or restarts proves nothing, even if the OmniCluster is gone, or if the controller was down until the
// deadline.
const shortestCleanup = 2 * time.Minute

// goneWith begins the reason to give up a cluster whose OmniCluster is gone.
const goneWith = "its OmniCluster is gone, and the cluster cannot be used: "

// Action is what to do about the clean-up of an object that is being deleted.
type Action int

// The actions.
const (
	// ActionCleanUp: the cluster answers and is the right one. Clean up there.
	ActionCleanUp Action = iota + 1
	// ActionLetGo: nothing can or need be cleaned up any more. Remove the finalizer, with an event that names what stays
	// behind.
	ActionLetGo
	// ActionWait: the cluster should exist, but cannot be used. Try again.
	ActionWait
)

// CleanupPolicy holds the facts that decide about the clean-up of an object in a workload cluster.
type CleanupPolicy struct {
	// ParentGone is true if the OmniCluster does not exist, ParentDestroying if it is being deleted and Omni destroys its
	// cluster.
	ParentGone, ParentDestroying bool
	// OtherHub says that the cluster is another hub's; empty if it is not known to be. That hub may still need
	// what bears this object's mark: it writes no mark while its own object is suspended.
	OtherHub string
	// Problem is why the cluster cannot be used now, and Reason the condition reason for it. Empty if it can be used.
	Problem, Reason string
	// NoKubeconfig is true if the problem is that there is no kubeconfig any more, and no export to write one.
	NoKubeconfig bool
	// NoSecret is true if the problem is that there is no Secret for a kubeconfig, whoever is to write one.
	NoSecret bool
	// Unrecorded is Requester.Unrecorded.
	Unrecorded bool
	// Asking is true if the problem is only that a probe of the cluster is under way. A probe ends by itself, so this
	// passes.
	Asking bool
	// Passing is true if the problem usually passes by itself: the cluster did not answer, or only a proxy before it did.
	Passing bool
	// Since is when the deletion began, Now is the current time; all times are by the clock of omni-apiserver.
	Since, Now time.Time
	// First is when this process first had such a problem with this deletion. Zero counts as long ago.
	First time.Time
}

// Decide returns the action, and the reason.
func (p CleanupPolicy) Decide() (Action, string) {
	switch {
	case p.ParentDestroying:
		return ActionLetGo, "the cluster is being destroyed with its OmniCluster"
	case p.OtherHub != "":
		return ActionLetGo, "nothing is removed in the workload cluster: " + p.OtherHub
	case p.Problem == "":
		return ActionCleanUp, ""
	case p.NoKubeconfig:
		return ActionLetGo, p.Problem
	case p.ParentGone && !p.Asking && !p.Passing:
		return ActionLetGo, goneWith + p.Problem
	case p.Unrecorded && !p.Asking:
		return ActionLetGo, p.Problem
	}

	end := p.end()

	switch {
	case p.Now.Before(end):
		return ActionWait, fmt.Sprintf("%s; it is tried until %s, then given up (set spec.deletionPolicy to Orphan to let go now)",
			p.Problem, words.Time(end))
	case p.ParentGone:
		return ActionLetGo, goneWith + p.Problem
	default:
		return ActionLetGo, fmt.Sprintf("for %s the clean-up did not succeed: %s", longestCleanup, p.Problem)
	}
}

// end returns when to give up the cluster. Without an OmniCluster the cluster need not exist, so only problems that may
// pass are waited for.
func (p CleanupPolicy) end() time.Time {
	end := p.Since
	if !p.ParentGone {
		end = p.Since.Add(longestCleanup)
	}

	if tried := p.First.Add(shortestCleanup); !p.First.IsZero() && tried.After(end) {
		return tried
	}

	return end
}
