package omnicluster

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// patience is how long a deletion waits quietly for a session with Omni since it
// is missing: it takes a moment after a start, and a watch may be lost for a
// second. After that the deletion is blocked, or, with orphan, lets go and leaves
// the mark: a mark on an orphan only informs.
const patience = 30 * time.Second

// deletion is what decides what deleting an OmniCluster does in Omni.
type deletion struct {
	name    string // of the cluster in Omni
	uid     string // of the OmniCluster
	hubs    hubs.Hubs
	rival   string // what is known of a second writer; empty: nothing
	orphan  bool
	observe bool
	// everSynced is true if the status says that this object may have written to
	// Omni. A status can be lost; the mark in Omni counts as well.
	everSynced bool
	// recorded and current are the endpoints: where the cluster was last seen,
	// and where the connection leads now.
	recorded, current string
	// session is the outcome of looking for a session with Omni: it continues
	// if live is known.
	session loop.Outcome
	live    omni.Live
	// knownID is the ID of the cluster that this object made, and recreate the
	// value of the annotation that allows another one in its place.
	knownID, recreate string
	// outage is for how long there has been no session, if there is none.
	outage time.Duration
	// behind is true if there is a session, and the local copy does not show our
	// own last writes yet: live is not known, and will be in a moment.
	behind bool
	// blocked is true if the status says so already.
	blocked bool
}

// step is what a deletion does next.
type step int

const (
	stepWait    step = iota // what the outcome says
	stepLetGo               // nothing is left to do in Omni
	stepUnmark              // take the mark off, then let go
	stepDestroy             // request or advance the teardown
)

// decide says what to do next. The outcome holds the text for people.
func (d deletion) decide() (step, loop.Outcome) {
	switch {
	case d.observe:
		return stepLetGo, released("spec.changePolicy is Observe: cluster %q stays in Omni as it is", d.name)
	case d.behind:
		return stepWait, d.hold(d.session.After(), "waiting to see cluster %q in Omni: %s", d.name, d.session.Message())
	case d.orphan:
		return d.decideOrphan()
	case !d.session.Continues():
		return d.decideUnreached()
	case !d.everSynced && !d.owned() && !d.ofOtherHub():
		return stepLetGo, d.neverWrote()
	}

	return d.decideDestroy()
}

// decideUnreached is for an Omni that cannot be used. That the status knows of no
// write is no proof that there was none, so it is given its time, too.
func (d deletion) decideUnreached() (step, loop.Outcome) {
	switch {
	case !d.everSynced && d.neverReached():
		return stepLetGo, d.neverWrote()
	case d.outage < patience:
		return stepWait, d.hold(patience-d.outage, "waiting for Omni to destroy cluster %q: %s", d.name, d.session.Message())
	case !d.everSynced:
		return stepLetGo, d.neverWrote()
	}

	return stepWait, loop.Block(d.session.After(), d.session.Reason(),
		"cluster %q cannot be destroyed in Omni: %s. Restore the connection, or set spec.deletePolicy.orphan to leave the cluster in Omni",
		d.name, d.session.Message())
}

// hold waits for what will be over in a moment: a deletion that is blocked for
// another reason, or was before a restart, goes on to say so.
func (d deletion) hold(after time.Duration, format string, args ...any) loop.Outcome {
	if d.blocked {
		return loop.Postpone(after, d.session.Reason(), format, args...)
	}

	return loop.Wait(after, d.session.Reason(), format, args...)
}

// neverReached is true without an OmniConnection: no session is on its way.
func (d deletion) neverReached() bool { return d.session.Reason() == v1alpha1.ReasonConnectionNotFound }

func (d deletion) neverWrote() loop.Outcome {
	return released("this object never wrote cluster %q to Omni; nothing is destroyed", d.name)
}

func (d deletion) decideOrphan() (step, loop.Outcome) {
	switch {
	case d.session.Continues() && d.leadsElsewhere():
		return stepLetGo, released("spec.deletePolicy.orphan is set: nothing is changed at %s, and cluster %q, which was last seen at %s, stays with this object's mark",
			d.current, d.name, d.recorded)
	case d.session.Continues() && d.owned() && d.live.TearingDown:
		return stepLetGo, released("cluster %q does not stay: it is being torn down in Omni since %s, which cannot be undone. "+
			"spec.deletePolicy.orphan came too late, and this object does not look after it any more: omnictl cluster delete %s finishes the teardown",
			d.name, shownTime(d.live.TearingDownSince), d.name)
	case d.session.Continues() && d.owned() && d.rival != "":
		return stepLetGo, released("cluster %q stays in Omni with this object's mark, because it has a second writer: %s", d.name, d.rival)
	case d.session.Continues() && d.owned():
		return stepUnmark, released("cluster %q stays in Omni, without this object's mark", d.name)
	case d.session.Continues(), !d.everSynced && (d.neverReached() || d.outage >= patience):
		return stepLetGo, released("spec.deletePolicy.orphan is set: nothing is changed in Omni")
	case d.outage < patience:
		return stepWait, loop.Wait(patience-d.outage, v1alpha1.ReasonDeleting,
			"waiting for Omni to take this object's mark off cluster %q: %s", d.name, d.session.Message())
	default:
		return stepLetGo, released("cluster %q stays in Omni with this object's mark, because Omni cannot be used: %s", d.name, d.session.Message())
	}
}

func (d deletion) decideDestroy() (step, loop.Outcome) {
	switch {
	case d.leadsElsewhere():
		// Whatever has the name here, it is not the cluster that was asked to go.
		return stepWait, loop.Block(0, v1alpha1.ReasonEndpointChanged,
			"cluster %q was last seen at %s, but the connection leads to %s: change it back, or set spec.deletePolicy.orphan",
			d.name, d.recorded, d.current)
	case !d.live.Exists:
		return stepLetGo, released("Omni has no cluster %q any more", d.name)
	case d.ofOtherHub():
		return stepLetGo, released("cluster %q in Omni belongs to this same object on another hub, %s; it is left alone", d.name, otherHub(d.live.Marks))
	case !d.owned():
		return stepLetGo, released("cluster %q in Omni does not carry this object's mark; it is left alone", d.name)
	case replaced(d.live, d.knownID, d.recreate):
		return stepWait, loop.Block(0, v1alpha1.ReasonRemoteClusterReplaced,
			"cluster %q in Omni carries this object's mark but is not the one that this object made: its ID is %s, not %s. "+
				"To destroy it set the annotation %s: %s; to leave it in Omni set spec.deletePolicy.orphan",
			d.name, d.live.UUID, d.knownID, v1alpha1.AnnotationRecreate, d.knownID)
	case d.knownID != "" && d.live.UUID == "" && (d.recreate != d.knownID || moved(d.recorded, d.current)) && !d.live.TearingDown:
		return stepWait, loop.Wait(time.Second, v1alpha1.ReasonDeleting, "waiting for Omni to tell the ID of cluster %q", d.name)
	case d.live.Locked && !d.live.TearingDown:
		return stepWait, loop.Block(0, v1alpha1.ReasonRemoteLocked,
			"cluster %q is locked in Omni (annotation omni.sidero.dev/cluster-locked): unlock it there, or set spec.deletePolicy.orphan", d.name)
	case d.rival != "" && !d.live.TearingDown:
		return stepWait, loop.Block(0, v1alpha1.ReasonSecondWriter, "cluster %q is not destroyed: %s. To leave it in Omni set spec.deletePolicy.orphan", d.name, d.rival)
	default:
		return stepDestroy, loop.Wait(0, v1alpha1.ReasonDeleting, "cluster %q is being destroyed in Omni", d.name)
	}
}

func (d deletion) owned() bool      { return owned(d.live, d.uid, d.hubs) }
func (d deletion) ofOtherHub() bool { return ofOtherHub(d.live, d.uid, d.hubs) }

// leadsElsewhere is the function of the same name, for this deletion.
func (d deletion) leadsElsewhere() bool {
	return leadsElsewhere(claim{uid: d.uid, hubs: d.hubs, knownID: d.knownID, live: d.live, lastSeen: d.recorded, endpoint: d.current})
}

// released is the outcome of a deletion that has nothing left to do.
func released(format string, args ...any) loop.Outcome {
	return loop.Continue(v1alpha1.ReasonDeleting, format, args...)
}
