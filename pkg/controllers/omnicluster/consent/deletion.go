package consent

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// OutageTimeout is how long a deletion waits without a word after its session with Omni is missing: a session takes a
// moment after a start, and a watch may be lost for a second. After that, the deletion is blocked; with orphan, it goes
// on without Omni and leaves the mark there, which only informs on an orphaned cluster.
const OutageTimeout = 30 * time.Second

// Deletion has the facts that decide what the deletion of an OmniCluster does in Omni.
type Deletion struct {
	// Claim describes the cluster. Its Live is known if Connected continues.
	Claim
	// SecondWriter describes a second writer; empty if none is known.
	SecondWriter string
	// Orphan is spec.deletePolicy.orphan.
	Orphan bool
	// Observe is true if the change policy is Observe.
	Observe bool
	// EverSynced is true if the status shows that this object may have written to Omni. A status can be lost, so the
	// mark in Omni counts as well.
	EverSynced bool
	// Connected is the outcome of getting a session with Omni.
	Connected loop.Outcome
	// Outage is how long there has been no session; 0 if there is one.
	Outage time.Duration
	// Behind is true if there is a session, but the local copy does not show our own last writes yet. Then Live is
	// unknown, and will be known in a moment.
	Behind bool
	// Unmarking is true if this process has asked Omni to take the mark off, and has had no answer.
	Unmarking bool
	// Blocked is true if the status already shows the deletion as blocked.
	Blocked bool
}

// Step is the next step of a deletion.
type Step int

// The steps.
const (
	StepWait    Step = iota // what the outcome says
	StepLetGo               // nothing is left to do in Omni
	StepUnmark              // take the mark off, if it is still there, then let go
	StepDestroy             // request or advance the teardown
)

// Decide returns the next step. The outcome has the message for users.
func (d Deletion) Decide() (Step, loop.Outcome) {
	switch {
	case d.Observe && d.Connected.Continues() && d.Owned() && d.Live.TearingDown:
		return StepLetGo, d.tearsDown("spec.changePolicy: Observe")
	case d.Observe:
		return StepLetGo, Released("spec.changePolicy is Observe: cluster %q stays in Omni as it is", d.Name)
	case d.Behind:
		return StepWait, d.hold(d.Connected.After(), "waiting to see cluster %q in Omni: %s", d.Name, d.Connected.Message())
	case d.Orphan:
		return d.decideOrphan()
	case !d.Connected.Continues():
		return d.decideUnreached()
	case !d.EverSynced && !d.Owned() && !d.ofOtherHub():
		return StepLetGo, d.neverWrote()
	}

	return d.decideDestroy()
}

// decideUnreached decides while Omni cannot be used. A status without a write does not prove that there was none, so
// such a deletion waits, too.
func (d Deletion) decideUnreached() (Step, loop.Outcome) {
	switch {
	case !d.EverSynced && d.neverReached():
		return StepLetGo, d.neverWrote()
	case d.Outage < OutageTimeout:
		return StepWait, d.hold(OutageTimeout-d.Outage, "waiting for Omni to destroy cluster %q: %s", d.Name, d.Connected.Message())
	case !d.EverSynced:
		return StepLetGo, d.neverWrote()
	}

	return StepWait, loop.Block(d.Connected.After(), d.Connected.Reason(),
		"cluster %q cannot be destroyed in Omni: %s. Restore the connection, or set spec.deletePolicy.orphan to leave the cluster in Omni",
		d.Name, d.Connected.Message())
}

// hold waits for a state that ends in a moment. A deletion that was blocked before, for this or another reason, stays
// blocked meanwhile.
func (d Deletion) hold(after time.Duration, format string, args ...any) loop.Outcome {
	if d.Blocked {
		return loop.Postpone(after, d.Connected.Reason(), format, args...)
	}

	return loop.Wait(after, d.Connected.Reason(), format, args...)
}

// neverReached reports whether there is no OmniConnection, so that no session can come.
func (d Deletion) neverReached() bool {
	return d.Connected.Reason() == v1alpha1.ReasonConnectionNotFound
}

func (d Deletion) neverWrote() loop.Outcome {
	return Released("this object never wrote cluster %q to Omni; nothing is destroyed", d.Name)
}

func (d Deletion) decideOrphan() (Step, loop.Outcome) {
	switch {
	case d.Connected.Continues() && d.LeadsElsewhere():
		return StepLetGo, Released("spec.deletePolicy.orphan is set: nothing is changed at %s, and cluster %q, which was last seen at %s, stays with this object's mark",
			d.Endpoint, d.Name, d.LastSeen)
	case d.Connected.Continues() && d.Owned() && d.Live.TearingDown:
		return StepLetGo, d.tearsDown("spec.deletePolicy.orphan")
	case d.Connected.Continues() && d.Owned() && d.SecondWriter != "":
		return StepLetGo, Released("cluster %q stays in Omni with this object's mark, because it has a second writer: %s", d.Name, d.SecondWriter)
	case d.Connected.Continues() && (d.Owned() || d.Unmarking && d.Live.Exists && !d.Live.TearingDown):
		return StepUnmark, Released("cluster %q stays in Omni, without this object's mark", d.Name)
	case d.Connected.Continues(), !d.EverSynced && (d.neverReached() || d.Outage >= OutageTimeout):
		return StepLetGo, Released("spec.deletePolicy.orphan is set: nothing is changed in Omni")
	case d.Outage < OutageTimeout:
		return StepWait, loop.Wait(OutageTimeout-d.Outage, v1alpha1.ReasonDeleting,
			"waiting for Omni to take this object's mark off cluster %q: %s", d.Name, d.Connected.Message())
	default:
		return StepLetGo, Released("cluster %q stays in Omni with this object's mark, because Omni cannot be used: %s", d.Name, d.Connected.Message())
	}
}

// tearsDown releases an object whose cluster is being torn down: a field came too late to keep it.
func (d Deletion) tearsDown(field string) loop.Outcome {
	return Released("cluster %q does not stay: it is being torn down in Omni since %s, which cannot be undone. "+
		"%s came too late, and this object does not look after it any more: omnictl cluster delete %s finishes the teardown",
		d.Name, words.Time(d.Live.TearingDownSince), field, d.Name)
}

func (d Deletion) decideDestroy() (Step, loop.Outcome) {
	switch {
	case d.LeadsElsewhere():
		// The cluster with this name is not the cluster that the user deleted.
		return StepWait, loop.Block(0, v1alpha1.ReasonEndpointChanged,
			"cluster %q was last seen at %s, but the connection leads to %s: change it back, or set spec.deletePolicy.orphan",
			d.Name, d.LastSeen, d.Endpoint)
	case !d.Live.Exists:
		return StepLetGo, Released("Omni has no cluster %q any more", d.Name)
	case d.ofOtherHub():
		return StepLetGo, Released("cluster %q in Omni belongs to this same object on another hub, %s; it is left alone", d.Name, otherHub(d.Live.Marks))
	case !d.Owned():
		return StepLetGo, Released("cluster %q in Omni does not carry this object's mark; it is left alone", d.Name)
	case d.replaced():
		return StepWait, loop.Block(0, v1alpha1.ReasonRemoteClusterReplaced,
			"cluster %q in Omni carries this object's mark but is not the one that this object made: its ID is %s, not %s. "+
				"To destroy it set the annotation %s: %s; to leave it in Omni set spec.deletePolicy.orphan",
			d.Name, d.Live.UUID, d.KnownID, v1alpha1.AnnotationRecreate, d.KnownID)
	case d.KnownID != "" && d.Live.UUID == "" && (d.Recreate != d.KnownID || d.moved()) && !d.Live.TearingDown:
		return StepWait, loop.Wait(time.Second, v1alpha1.ReasonDeleting, "waiting for Omni to tell the ID of cluster %q", d.Name)
	case d.Live.Locked && !d.Live.TearingDown:
		return StepWait, loop.Block(0, v1alpha1.ReasonRemoteLocked,
			"cluster %q is locked in Omni (annotation omni.sidero.dev/cluster-locked): unlock it there, or set spec.deletePolicy.orphan", d.Name)
	case d.SecondWriter != "" && !d.Live.TearingDown:
		return StepWait, loop.Block(0, v1alpha1.ReasonSecondWriter, "cluster %q is not destroyed: %s. To leave it in Omni set spec.deletePolicy.orphan", d.Name, d.SecondWriter)
	default:
		return StepDestroy, loop.Wait(0, v1alpha1.ReasonDeleting, "cluster %q is being destroyed in Omni", d.Name)
	}
}

// Released returns the outcome of a deletion that has nothing left to do.
func Released(format string, args ...any) loop.Outcome {
	return loop.Continue(v1alpha1.ReasonDeleting, format, args...)
}
