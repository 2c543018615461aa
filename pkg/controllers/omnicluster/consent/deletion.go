package consent

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// OutageTimeout is how long a deletion waits quietly for a session with Omni since it
// is missing: it takes a moment after a start, and a watch may be lost for a
// second. After that the deletion is blocked, or, with orphan, lets go and leaves
// the mark: a mark on an orphan only informs.
const OutageTimeout = 30 * time.Second

// Deletion is what decides what deleting an OmniCluster does in Omni.
type Deletion struct {
	// Claim is about the cluster. Its Live is known if Session continues.
	Claim
	// SecondWriter is what is known of a second writer; empty: nothing.
	SecondWriter string
	// Orphan is spec.deletePolicy.orphan.
	Orphan bool
	// Observe is true if the change policy is Observe.
	Observe bool
	// EverSynced is true if the status says that this object may have written to
	// Omni. A status can be lost; the mark in Omni counts as well.
	EverSynced bool
	// Session is the outcome of looking for a session with Omni.
	Session loop.Outcome
	// Outage is for how long there has been no session, if there is none.
	Outage time.Duration
	// Behind is true if there is a session, and the local copy does not show our
	// own last writes yet: Live is not known, and will be in a moment.
	Behind bool
	// Blocked is true if the status says so already.
	Blocked bool
}

// Step is what a deletion does next.
type Step int

// The steps.
const (
	StepWait    Step = iota // what the outcome says
	StepLetGo               // nothing is left to do in Omni
	StepUnmark              // take the mark off, then let go
	StepDestroy             // request or advance the teardown
)

// Decide says what to do next. The outcome holds the text for people.
func (d Deletion) Decide() (Step, loop.Outcome) {
	switch {
	case d.Observe:
		return StepLetGo, Released("spec.changePolicy is Observe: cluster %q stays in Omni as it is", d.Name)
	case d.Behind:
		return StepWait, d.hold(d.Session.After(), "waiting to see cluster %q in Omni: %s", d.Name, d.Session.Message())
	case d.Orphan:
		return d.decideOrphan()
	case !d.Session.Continues():
		return d.decideUnreached()
	case !d.EverSynced && !d.Owned() && !d.ofOtherHub():
		return StepLetGo, d.neverWrote()
	}

	return d.decideDestroy()
}

// decideUnreached is for an Omni that cannot be used. That the status knows of no
// write is no proof that there was none, so it is given its time, too.
func (d Deletion) decideUnreached() (Step, loop.Outcome) {
	switch {
	case !d.EverSynced && d.neverReached():
		return StepLetGo, d.neverWrote()
	case d.Outage < OutageTimeout:
		return StepWait, d.hold(OutageTimeout-d.Outage, "waiting for Omni to destroy cluster %q: %s", d.Name, d.Session.Message())
	case !d.EverSynced:
		return StepLetGo, d.neverWrote()
	}

	return StepWait, loop.Block(d.Session.After(), d.Session.Reason(),
		"cluster %q cannot be destroyed in Omni: %s. Restore the connection, or set spec.deletePolicy.orphan to leave the cluster in Omni",
		d.Name, d.Session.Message())
}

// hold waits for what will be over in a moment: a deletion that is blocked for
// another reason, or was before a restart, goes on to say so.
func (d Deletion) hold(after time.Duration, format string, args ...any) loop.Outcome {
	if d.Blocked {
		return loop.Postpone(after, d.Session.Reason(), format, args...)
	}

	return loop.Wait(after, d.Session.Reason(), format, args...)
}

// neverReached is true without an OmniConnection: no session is on its way.
func (d Deletion) neverReached() bool { return d.Session.Reason() == v1alpha1.ReasonConnectionNotFound }

func (d Deletion) neverWrote() loop.Outcome {
	return Released("this object never wrote cluster %q to Omni; nothing is destroyed", d.Name)
}

func (d Deletion) decideOrphan() (Step, loop.Outcome) {
	switch {
	case d.Session.Continues() && d.LeadsElsewhere():
		return StepLetGo, Released("spec.deletePolicy.orphan is set: nothing is changed at %s, and cluster %q, which was last seen at %s, stays with this object's mark",
			d.Endpoint, d.Name, d.LastSeen)
	case d.Session.Continues() && d.Owned() && d.Live.TearingDown:
		return StepLetGo, Released("cluster %q does not stay: it is being torn down in Omni since %s, which cannot be undone. "+
			"spec.deletePolicy.orphan came too late, and this object does not look after it any more: omnictl cluster delete %s finishes the teardown",
			d.Name, ShownTime(d.Live.TearingDownSince), d.Name)
	case d.Session.Continues() && d.Owned() && d.SecondWriter != "":
		return StepLetGo, Released("cluster %q stays in Omni with this object's mark, because it has a second writer: %s", d.Name, d.SecondWriter)
	case d.Session.Continues() && d.Owned():
		return StepUnmark, Released("cluster %q stays in Omni, without this object's mark", d.Name)
	case d.Session.Continues(), !d.EverSynced && (d.neverReached() || d.Outage >= OutageTimeout):
		return StepLetGo, Released("spec.deletePolicy.orphan is set: nothing is changed in Omni")
	case d.Outage < OutageTimeout:
		return StepWait, loop.Wait(OutageTimeout-d.Outage, v1alpha1.ReasonDeleting,
			"waiting for Omni to take this object's mark off cluster %q: %s", d.Name, d.Session.Message())
	default:
		return StepLetGo, Released("cluster %q stays in Omni with this object's mark, because Omni cannot be used: %s", d.Name, d.Session.Message())
	}
}

func (d Deletion) decideDestroy() (Step, loop.Outcome) {
	switch {
	case d.LeadsElsewhere():
		// Whatever has the name here, it is not the cluster that was asked to go.
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

// Released is the outcome of a deletion that has nothing left to do.
func Released(format string, args ...any) loop.Outcome {
	return loop.Continue(v1alpha1.ReasonDeleting, format, args...)
}
