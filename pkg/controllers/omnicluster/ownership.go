package omnicluster

import (
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// claim is what decides whether a cluster in Omni is this object's to change.
type claim struct {
	name     string // of the cluster in Omni
	uid      string // of the OmniCluster
	knownID  string // status.omniClusterID
	adopt    bool   // spec.adopt
	recreate string // value of the annotation that allows a lost cluster to be made again
	live     omni.Live
	hubs     hubs.Hubs // whose marks count as this object's
	// connection is the OmniConnection's name.
	connection string
	// lastSeen is status.endpoint, where the cluster is or may be, and endpoint is
	// where the connection leads now.
	lastSeen, endpoint string
	// ownerGone is true if the object whose mark it carries does not exist in this
	// management cluster, and the mark names no other one.
	ownerGone bool
}

// markKeys are the annotations that hold the owner's mark.
func markKeys() omni.MarkKeys {
	return omni.MarkKeys{
		UID: v1alpha1.MarkOwnerUID, Hub: v1alpha1.MarkHub, Namespace: v1alpha1.MarkOwnerNamespace,
		Name: v1alpha1.MarkOwnerName, ManagementCluster: v1alpha1.MarkManagementCluster,
	}
}

// owned tells whether a cluster exists in Omni and carries this object's mark.
// The UID and the hub decide.
func owned(live omni.Live, uid string, known hubs.Hubs) bool {
	return live.Exists && isMark(live.Marks, uid, known)
}

// isMark tells whether marks are those of this object, on this hub or on one that
// it was restored from.
func isMark(marks omni.Marks, uid string, known hubs.Hubs) bool {
	return uid != "" && marks.UID == uid && known.Ours(marks.Hub)
}

// ofOtherHub tells whether a cluster carries the mark of this very object on
// another hub: there are two hubs with the same objects.
func ofOtherHub(live omni.Live, uid string, known hubs.Hubs) bool {
	return live.Exists && uid != "" && live.Marks.UID == uid && !known.Ours(live.Marks.Hub)
}

// judgeClaim decides whether the cluster may be planned: it continues for a
// cluster of ours, for a name that is free, and for a cluster that is to be
// adopted.
func judgeClaim(c claim) loop.Outcome {
	live := c.live

	switch {
	case ofOtherHub(live, c.uid, c.hubs):
		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "%s", belongsToOtherHub(c))
	case leadsElsewhere(c):
		return loop.Stall(v1alpha1.ReasonEndpointChanged, "%s", endpointChanged(c))
	case live.Exists && live.TearingDown:
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "cluster %q is being torn down in Omni since %s; nothing is planned until it is gone",
			c.name, shownTime(live.TearingDownSince))
	case owned(live, c.uid, c.hubs):
		return judgeIdentity(c)
	case live.Exists && c.knownID != "" && live.Marks.UID != "":
		return loop.Stall(v1alpha1.ReasonOwnershipLost, "cluster %q in Omni now belongs to %s; it is not taken back", c.name, c.owner())
	case adoptable(c) && live.UUID == "":
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "cluster %q is to be adopted; waiting for Omni to tell its ID", c.name)
	case adoptable(c):
		return loop.Continue(v1alpha1.ReasonUpToDate, "the cluster is to be adopted")
	case live.Exists:
		return loop.Stall(v1alpha1.ReasonNotOwned, "%s", notOwned(c))
	case c.knownID != "" && c.recreate != c.knownID:
		return loop.Stall(v1alpha1.ReasonRemoteClusterGone,
			"Omni no longer has cluster %q (%s); to make it again, empty, set the annotation %s: %s",
			c.name, c.knownID, v1alpha1.AnnotationRecreate, c.knownID)
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "the name is free")
	}
}

// moved tells whether a connection leads to another endpoint than the recorded
// one; false if none was recorded.
func moved(recorded, current string) bool {
	return recorded != "" && !session.SameEndpoint(recorded, current)
}

// leadsElsewhere tells whether the connection leads to another endpoint than the
// one where the cluster was last seen, and this object's cluster is not there: it
// is neither gone nor replaced, and an annotation that allows to make it again
// does not count. An Omni that got a new name has the cluster, with its ID.
func leadsElsewhere(c claim) bool {
	switch {
	case !moved(c.lastSeen, c.endpoint):
		return false
	case !c.live.Exists:
		return true
	case c.knownID != "" && c.live.UUID != "":
		return c.live.UUID != c.knownID
	default: // the ID is not known here, or there is not told yet: the mark says whose it is
		return !owned(c.live, c.uid, c.hubs)
	}
}

// endpointChanged says where the cluster is, and what helps.
func endpointChanged(c claim) string {
	where := fmt.Sprintf("cluster %q was last seen at %s", c.name, c.lastSeen)
	if c.knownID == "" {
		where = fmt.Sprintf("cluster %q may be at %s (Omni had not told its ID yet)", c.name, c.lastSeen)
	}

	here := "which has no such cluster"

	switch {
	case owned(c.live, c.uid, c.hubs):
		here = fmt.Sprintf("where the cluster of that name has the ID %s, not %s", c.live.UUID, c.knownID)
	case c.live.Exists:
		here = "where the cluster of that name does not carry this object's mark"
	}

	return fmt.Sprintf("%s, but the connection leads to %s, %s; nothing is changed there, and the annotation %s does not help: "+
		"change it back (spec.endpoint of the OmniConnection). To make the cluster anew at %s and leave what is at %s, "+
		"delete this object with spec.deletePolicy.orphan and create it again",
		where, c.endpoint, here, v1alpha1.AnnotationRecreate, c.endpoint, c.lastSeen)
}

// adoptable tells whether a cluster that is not ours may be taken over: on the
// user's word, and only by an object that never had a cluster. So two objects
// that want the same cluster do not take turns. That an object had one is known
// from the ID in its status: a cluster whose ID Omni has not told yet waits.
func adoptable(c claim) bool { return c.adopt && c.knownID == "" && c.live.Exists }

// replaced tells whether a cluster that carries our mark is known to be another
// one than this object made, and nobody allowed it to take that one's place.
// The mark alone does not tell: a template that was exported from the old one
// carries it along.
func replaced(live omni.Live, knownID, recreate string) bool {
	return knownID != "" && live.UUID != "" && live.UUID != knownID && recreate != knownID
}

// judgeIdentity is judgeClaim for a cluster that carries our mark.
func judgeIdentity(c claim) loop.Outcome {
	switch {
	case replaced(c.live, c.knownID, c.recreate):
		return loop.Stall(v1alpha1.ReasonRemoteClusterReplaced,
			"cluster %q in Omni carries this object's mark but is not the one that this object made: its ID is %s, not %s; "+
				"nothing is changed. To take the new one, set the annotation %s: %s",
			c.name, c.live.UUID, c.knownID, v1alpha1.AnnotationRecreate, c.knownID)
	case c.knownID != "" && c.live.UUID == "" && (c.recreate != c.knownID || moved(c.lastSeen, c.endpoint)):
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "waiting for Omni to tell the ID of cluster %q", c.name)
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "the cluster carries this object's mark")
	}
}

// isAdopting tells whether every destroy has to be approved: an existing cluster
// is taken over, and never had a plan without changes since. status is what was
// written before the first change, for when the object's word changes or the
// cluster's ID is known by now.
func isAdopting(c claim, status bool) bool {
	if !c.live.Exists {
		return false
	}

	// A replacement that was allowed holds what this object did not make, too.
	accepted := owned(c.live, c.uid, c.hubs) && c.knownID != "" && c.live.UUID != c.knownID && c.recreate == c.knownID

	return status || adoptable(c) || accepted
}

// belongsToOtherHub says what to do about a copy of the objects.
func belongsToOtherHub(c claim) string {
	return fmt.Sprintf("cluster %q in Omni belongs to this same object on another hub, %s; this hub is %s and has a copy of the object. Nothing is changed. "+
		"If that hub works, delete the copy here: that destroys nothing. "+
		"If it is gone for good, take over its clusters: set the annotation %s: %s on OmniConnection %q",
		c.name, otherHub(c.live.Marks), c.hubs.Own, v1alpha1.AnnotationPreviousHub, omni.Sanitize(c.live.Marks.Hub), c.connection)
}

// otherHub names the hub that wrote a mark.
func otherHub(marks omni.Marks) string {
	text := omni.Sanitize(marks.Hub)
	if marks.ManagementCluster != "" {
		text += " (management cluster " + omni.Sanitize(marks.ManagementCluster) + ")"
	}

	return text
}

func notOwned(c claim) string {
	text := fmt.Sprintf("cluster %q exists in Omni and was not made by this object", c.name)
	if c.live.Marks.UID != "" {
		text = fmt.Sprintf("cluster %q exists in Omni and belongs to %s", c.name, c.owner())
	}

	if c.knownID != "" {
		return text + fmt.Sprintf("; nothing is changed. If it is the one that this object made and somebody erased its mark, put the annotation back in Omni: %s: %s",
			v1alpha1.MarkOwnerUID, c.uid)
	}

	return text + "; nothing is changed. To take it over set spec.adopt: true, or make a new OmniCluster with another spec.clusterName"
}

// owner names the holder of the cluster's mark for people.
func (c claim) owner() string {
	if c.ownerGone {
		return owner(c.live.Marks) + ", which does not exist in this management cluster"
	}

	return owner(c.live.Marks)
}

// owner names the holder of a mark for people.
func owner(marks omni.Marks) string {
	text := fmt.Sprintf("OmniCluster %s/%s", marks.Namespace, marks.Name)
	if marks.ManagementCluster != "" {
		text += " of management cluster " + marks.ManagementCluster
	}

	id := "UID " + marks.UID
	if marks.Hub != "" {
		id += ", hub " + marks.Hub
	}

	return omni.Sanitize(text) + " (" + omni.Sanitize(id) + ")"
}

// hubFor is the hub in the mark that is rendered. A cluster that is only looked
// at keeps the mark that it has: to complete it is no difference that somebody has
// to know of.
func (r *reconciler) hubFor(s *scope) template.Hub {
	hub := template.Hub{ID: r.options.HubID, Name: r.options.ManagementCluster}

	spec := s.cluster.Spec
	if onlyLooks := spec.Suspend || spec.ChangePolicy == v1alpha1.ChangePolicyObserve; onlyLooks && s.owns(s.live) {
		hub.ID = s.live.Marks.Hub
		if hub.ID != r.options.HubID {
			hub.Name = s.live.Marks.ManagementCluster
		}
	}

	return hub
}
