package consent

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Claim has the facts that decide whether a cluster in Omni belongs to this object.
type Claim struct {
	// Name of the cluster in Omni.
	Name string
	// UID of the OmniCluster.
	UID string
	// KnownID is the ID of the cluster that this object made, from its status.
	KnownID string
	// Adopt is spec.adopt.
	Adopt bool
	// Recreate is the value of the annotation that allows another cluster in the place
	// of a lost one.
	Recreate string
	// Live is the cluster as Omni has it.
	Live omni.Live
	// Hubs are the hubs whose marks count as this object's.
	Hubs hubs.Hubs
	// Connection is the name of the OmniConnection.
	Connection string
	// LastSeen is status.endpoint: where the cluster is or may be. Endpoint is where the connection leads now.
	LastSeen, Endpoint string
	// Owner says whether the object that the mark names exists in this management cluster.
	Owner OwnerState
}

// OwnerState says whether the object that a mark names exists.
type OwnerState int

// The states. What is not known counts as existing.
const (
	OwnerUnknown OwnerState = iota // it cannot be read from here
	OwnerExists
	OwnerMadeAnew // it is gone; another one has its name, and names the same cluster
	OwnerGone
)

// Owned reports whether the cluster exists in Omni and carries this object's mark: its UID and the hub.
func (c Claim) Owned() bool { return c.Live.Exists && IsMark(c.Live.Marks, c.UID, c.Hubs) }

// IsMark reports whether marks are this object's, made on this hub or on a hub from which it was restored.
func IsMark(marks omni.Marks, uid string, accepted hubs.Hubs) bool {
	return uid != "" && marks.UID == uid && accepted.Ours(marks.Hub)
}

// ofOtherHub reports whether the cluster carries this object's mark from another hub: two hubs have the same objects.
func (c Claim) ofOtherHub() bool {
	return c.Live.Exists && c.UID != "" && c.Live.Marks.UID == c.UID && !c.Hubs.Ours(c.Live.Marks.Hub)
}

// ownedOnOtherHub reports whether the cluster carries the mark of another object on another hub: each hub that is built from
// the same files has objects with UIDs of its own.
func (c Claim) ownedOnOtherHub() bool {
	marks := c.Live.Marks

	return c.Live.Exists && marks.UID != "" && marks.UID != c.UID && !c.Hubs.Ours(marks.Hub)
}

// OtherHub returns the ID of another hub to which the cluster belongs, on one bounded line; empty if it belongs to none. A mark of
// another object counts if this object had the cluster or is to adopt it: an object that only looks at a cluster of another hub says
// NotOwned, and may have work of its own in it.
func (c Claim) OtherHub() string {
	concerned := c.KnownID != "" || c.Adopt

	if c.ofOtherHub() || c.ownedOnOtherHub() && concerned && !c.LeadsElsewhere() {
		return cmp.Or(omni.Sanitize(c.Live.Marks.Hub), "a hub without a name") // the mark is foreign text
	}

	return ""
}

// FromPreviousHub reports whether the cluster carries this object's mark from the hub that its connection names as the
// previous one.
func (c Claim) FromPreviousHub() bool { return c.Owned() && c.Hubs.IsPrevious(c.Live.Marks.Hub) }

// Judge decides whether the cluster may be planned. The outcome continues for a cluster of this object, for a name that
// is free, and for a cluster that the object may adopt.
func (c Claim) Judge() loop.Outcome {
	live := c.Live

	switch {
	case c.ofOtherHub():
		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "%s", c.belongsToOtherHub())
	case c.LeadsElsewhere():
		return loop.Stall(v1alpha1.ReasonEndpointChanged, "%s", c.endpointChanged())
	case live.Exists && live.TearingDown:
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "cluster %q is being torn down in Omni since %s; nothing is planned until it is gone",
			c.Name, words.Time(live.TearingDownSince))
	case c.Owned():
		return c.judgeIdentity()
	case live.Exists && c.KnownID != "" && live.Marks.UID != "":
		return loop.Stall(v1alpha1.ReasonOwnershipLost, "cluster %q in Omni now belongs to %s; it is not taken back", c.Name, c.owner())
	case c.Adopt && c.ownedOnOtherHub():
		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "%s", c.isNotAdopted())
	case c.Adopt && c.KnownID == "" && c.ownedHere():
		return loop.Stall(v1alpha1.ReasonNotOwned, "%s", c.isNotReleased())
	case c.adoptable() && live.UUID == "":
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "cluster %q is to be adopted; waiting for Omni to tell its ID", c.Name)
	case c.adoptable():
		return loop.Continue(v1alpha1.ReasonUpToDate, "the cluster is to be adopted")
	case live.Exists:
		return loop.Stall(v1alpha1.ReasonNotOwned, "%s", c.notOwned())
	case c.KnownID != "" && c.Recreate != c.KnownID:
		return loop.Stall(v1alpha1.ReasonRemoteClusterGone,
			"Omni no longer has cluster %q (%s); to make it again, empty, set the annotation %s: %s",
			c.Name, c.KnownID, v1alpha1.AnnotationRecreate, c.KnownID)
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "the name is free")
	}
}

// moved reports whether the connection leads to another endpoint than the recorded one.
func (c Claim) moved() bool { return Moved(c.LastSeen, c.Endpoint) }

// Moved reports whether an endpoint differs from the recorded one; false if none is recorded.
func Moved(recorded, current string) bool {
	return recorded != "" && !omni.SameOrigin(recorded, current)
}

// LeadsElsewhere reports whether the connection leads to another endpoint than the one where the cluster was last seen,
// and this object's cluster is not there. Then the cluster is neither gone nor replaced, and an annotation that allows
// to create it again has no effect. An Omni that only has a new name still has the cluster, with its ID.
func (c Claim) LeadsElsewhere() bool {
	switch {
	case !c.moved():
		return false
	case !c.Live.Exists:
		return true
	case c.KnownID != "" && c.Live.UUID != "":
		return c.Live.UUID != c.KnownID
	default: // the ID is not known here, or there is not told yet: the mark says whose it is
		return !c.Owned()
	}
}

// adoptable reports whether the object may adopt a cluster that is not its own: only if spec.adopt is set, and the
// object never had a cluster. So two objects that name the same cluster do not take it from each other in turns. The ID
// in the status shows that an object had a cluster; an object whose cluster has no ID yet waits. A cluster of another
// hub is not adopted before somebody says that the hub is gone, nor one of an object that may exist before it is released
// there: spec.adopt stays in files, and a hub or a namespace that is made from them must not take the clusters of the first.
func (c Claim) adoptable() bool {
	return c.Adopt && c.KnownID == "" && c.Live.Exists && !c.ownedOnOtherHub() && !c.ownedHere()
}

// ownedHere reports whether the cluster carries the mark of another object of this hub that exists, or may exist.
func (c Claim) ownedHere() bool {
	marks := c.Live.Marks

	return c.Live.Exists && marks.UID != "" && marks.UID != c.UID && c.Hubs.Ours(marks.Hub) && c.Owner != OwnerGone
}

// replaced reports whether a cluster with our mark is known to be another one than the cluster that this object made,
// and nobody allowed it in that place. The mark alone does not show this: a template that was exported from the old
// cluster has the mark, too.
func (c Claim) replaced() bool {
	return c.KnownID != "" && c.Live.UUID != "" && c.Live.UUID != c.KnownID && c.Recreate != c.KnownID
}

// judgeIdentity is Judge for a cluster that carries our mark.
func (c Claim) judgeIdentity() loop.Outcome {
	switch {
	case c.replaced():
		return loop.Stall(v1alpha1.ReasonRemoteClusterReplaced,
			"cluster %q in Omni carries this object's mark but is not the one that this object made: its ID is %s, not %s; "+
				"nothing is changed. To take the new one, set the annotation %s: %s",
			c.Name, c.Live.UUID, c.KnownID, v1alpha1.AnnotationRecreate, c.KnownID)
	case c.KnownID != "" && c.Live.UUID == "" && (c.Recreate != c.KnownID || c.moved()):
		return loop.Wait(time.Second, v1alpha1.ReasonProgressing, "waiting for Omni to tell the ID of cluster %q", c.Name)
	default:
		return loop.Continue(v1alpha1.ReasonUpToDate, "the cluster carries this object's mark")
	}
}

// IsAdopting reports whether every destroy needs an approval: an existing cluster was adopted and has not had a plan
// without changes since. status is the status that was written before the first change; it counts when spec.adopt
// changes later or the ID of the cluster has become known.
func (c Claim) IsAdopting(status bool) bool {
	if !c.Live.Exists {
		return false
	}

	// A replacement that was allowed also has things that this object did not make.
	accepted := c.Owned() && c.KnownID != "" && c.Live.UUID != c.KnownID && c.Recreate == c.KnownID

	return status || c.adoptable() || accepted
}

// endpointChanged returns the message about a changed endpoint: where the cluster is, and what to do.
func (c Claim) endpointChanged() string {
	where := fmt.Sprintf("cluster %q was last seen at %s", c.Name, c.LastSeen)
	if c.KnownID == "" {
		where = fmt.Sprintf("cluster %q may be at %s (Omni had not told its ID yet)", c.Name, c.LastSeen)
	}

	here := "which has no such cluster"

	switch {
	case c.Owned():
		here = fmt.Sprintf("where the cluster of that name has the ID %s, not %s", c.Live.UUID, c.KnownID)
	case c.Live.Exists:
		here = "where the cluster of that name does not carry this object's mark"
	}

	return fmt.Sprintf("%s, but the connection leads to %s, %s; nothing is changed there, and the annotation %s does not help: "+
		"change it back (spec.endpoint of the OmniConnection). To make the cluster anew at %s and leave what is at %s, "+
		"delete this object with spec.deletePolicy.orphan and create it again",
		where, c.Endpoint, here, v1alpha1.AnnotationRecreate, c.Endpoint, c.LastSeen)
}

// belongsToOtherHub returns the message about a copy of the objects on another hub.
func (c Claim) belongsToOtherHub() string {
	return fmt.Sprintf("cluster %q in Omni belongs to this same object on another hub, %s; this hub is %s and has a copy of the object. Nothing is changed. "+
		"If that hub works, delete the copy here: that destroys nothing. "+
		"If it is gone for good, take over its clusters: set the annotation %s: %s on OmniConnection %q",
		c.Name, otherHub(c.Live.Marks), c.Hubs.Own, v1alpha1.AnnotationPreviousHub, omni.Sanitize(c.Live.Marks.Hub), c.Connection)
}

// otherHub returns the name of the hub that wrote a mark.
func otherHub(marks omni.Marks) string {
	text := omni.Sanitize(marks.Hub)
	if marks.ManagementCluster != "" {
		text += " (management cluster " + omni.Sanitize(marks.ManagementCluster) + ")"
	}

	return text
}

func (c Claim) notOwned() string {
	text := fmt.Sprintf("cluster %q exists in Omni and was not made by this object", c.Name)
	if c.Live.Marks.UID != "" {
		text = fmt.Sprintf("cluster %q exists in Omni and belongs to %s", c.Name, c.owner())
	}

	if c.KnownID != "" {
		return text + fmt.Sprintf("; nothing is changed. If it is the one that this object made and somebody erased its mark, put the annotation back in Omni: %s: %s",
			v1alpha1.MarkOwnerUID, c.UID)
	}

	allow := "set spec.adopt: true"
	switch {
	case c.ownedHere():
		allow = "release it there first (spec.deletePolicy.orphan: true, then delete it) and set spec.adopt: true here"
	case c.ownedOnOtherHub():
		allow += fmt.Sprintf(" and the annotation %s: %s on OmniConnection %q, if that hub is gone for good",
			v1alpha1.AnnotationPreviousHub, omni.Sanitize(c.Live.Marks.Hub), c.Connection)
	}

	return text + "; nothing is changed. To take it over, " + allow + ", or make a new OmniCluster with another spec.clusterName"
}

// isNotAdopted returns the message about a cluster of another hub that spec.adopt does not take over.
func (c Claim) isNotAdopted() string {
	hub := c.Live.Marks.Hub

	return fmt.Sprintf("cluster %q in Omni belongs to %s, and this hub is %s: spec.adopt alone takes nothing from another hub, and nothing is changed. %s",
		c.Name, owner(c.Live.Marks), c.Hubs.Own, hubs.Advice(hub, "cluster", fmt.Sprintf("OmniConnection %q", c.Connection)))
}

// isNotReleased returns the message about a cluster of another object of this hub that spec.adopt does not take over.
func (c Claim) isNotReleased() string {
	text := fmt.Sprintf("cluster %q in Omni belongs to %s, ", c.Name, c.owner())

	switch c.Owner {
	case OwnerExists:
		text += "which exists"
	case OwnerMadeAnew:
		text += "which was made anew there and may take it back"
	default:
		return text + "whether it exists cannot be seen from here, and nothing is changed. " +
			"Release the cluster there first: set spec.deletePolicy.orphan: true, then delete the object. " +
			"If it is gone, take the annotation " + v1alpha1.MarkOwnerUID + " off the cluster in Omni"
	}

	return text + ": spec.adopt takes nothing from it, and nothing is changed. " +
		"To take the cluster over, release it there first: set spec.deletePolicy.orphan: true, then delete it. " +
		"If this is a copy of the Omni, take the annotation " + v1alpha1.MarkOwnerUID + " off the cluster in the copy instead"
}

// owner returns the name of the object that the cluster's mark belongs to, for messages.
func (c Claim) owner() string {
	if c.Owner == OwnerGone {
		return owner(c.Live.Marks) + ", which does not exist in this management cluster"
	}

	return owner(c.Live.Marks)
}

// owner returns the name of the object that a mark belongs to, for messages.
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

// Takeover returns the end of a message that names the owner whose cluster is about to be adopted; empty if none is.
func (c Claim) Takeover() string {
	switch {
	case c.FromPreviousHub():
		return "; cluster " + strconv.Quote(c.Name) + " is taken over from hub " + otherHub(c.Live.Marks) +
			", which OmniConnection " + strconv.Quote(c.Connection) + " names (" + v1alpha1.AnnotationPreviousHub + ")"
	case !c.Live.Exists || c.Owned():
		return ""
	case c.Live.Marks.UID == "":
		return "; cluster " + strconv.Quote(c.Name) + ", which has no owner, is taken over (spec.adopt)"
	default:
		return "; cluster " + strconv.Quote(c.Name) + " is taken over (spec.adopt) from " + owner(c.Live.Marks)
	}
}
