package consent

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// Claim is what decides whether a cluster in Omni is this object's to change.
type Claim struct {
	// Name is that of the cluster in Omni.
	Name string
	// UID is that of the OmniCluster.
	UID string
	// KnownID is the ID of the cluster that this object made, as its status has it.
	KnownID string
	// Adopt is spec.adopt.
	Adopt bool
	// Recreate is the value of the annotation that allows another cluster in the place
	// of a lost one.
	Recreate string
	// Live is what Omni has of the cluster.
	Live omni.Live
	// Hubs are those whose marks count as this object's.
	Hubs hubs.Hubs
	// Connection is the OmniConnection's name.
	Connection string
	// LastSeen is status.endpoint, where the cluster is or may be, and Endpoint is
	// where the connection leads now.
	LastSeen, Endpoint string
	// OwnerGone is true if the object whose mark it carries does not exist in this
	// management cluster, and the mark names no other one.
	OwnerGone bool
}

// Owned reports whether the cluster exists in Omni and carries this object's mark.
// The UID and the hub decide.
func (c Claim) Owned() bool { return c.Live.Exists && IsMark(c.Live.Marks, c.UID, c.Hubs) }

// IsMark reports whether marks are those of this object, on this hub or on one that
// it was restored from.
func IsMark(marks omni.Marks, uid string, known hubs.Hubs) bool {
	return uid != "" && marks.UID == uid && known.Ours(marks.Hub)
}

// ofOtherHub reports whether the cluster carries the mark of this very object on
// another hub: there are two hubs with the same objects.
func (c Claim) ofOtherHub() bool {
	return c.Live.Exists && c.UID != "" && c.Live.Marks.UID == c.UID && !c.Hubs.Ours(c.Live.Marks.Hub)
}

// FromPreviousHub reports whether the cluster carries this object's mark of the hub
// that its connection names as the previous one.
func (c Claim) FromPreviousHub() bool { return c.Owned() && c.Hubs.IsPrevious(c.Live.Marks.Hub) }

// Judge decides whether the cluster may be planned: it continues for a
// cluster of ours, for a name that is free, and for a cluster that is to be
// adopted.
func (c Claim) Judge() loop.Outcome {
	live := c.Live

	switch {
	case c.ofOtherHub():
		return loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "%s", c.belongsToOtherHub())
	case c.LeadsElsewhere():
		return loop.Stall(v1alpha1.ReasonEndpointChanged, "%s", c.endpointChanged())
	case live.Exists && live.TearingDown:
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "cluster %q is being torn down in Omni since %s; nothing is planned until it is gone",
			c.Name, ShownTime(live.TearingDownSince))
	case c.Owned():
		return c.judgeIdentity()
	case live.Exists && c.KnownID != "" && live.Marks.UID != "":
		return loop.Stall(v1alpha1.ReasonOwnershipLost, "cluster %q in Omni now belongs to %s; it is not taken back", c.Name, c.owner())
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

// moved reports whether the connection leads to another endpoint than the recorded
// one.
func (c Claim) moved() bool { return Moved(c.LastSeen, c.Endpoint) }

// Moved reports whether an endpoint is another than the recorded one; false if none
// was recorded.
func Moved(recorded, current string) bool {
	return recorded != "" && !session.SameEndpoint(recorded, current)
}

// LeadsElsewhere reports whether the connection leads to another endpoint than the
// one where the cluster was last seen, and this object's cluster is not there: it
// is neither gone nor replaced, and an annotation that allows to make it again
// does not count. An Omni that got a new name has the cluster, with its ID.
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

// adoptable reports whether a cluster that is not ours may be taken over: on the
// user's word, and only by an object that never had a cluster. So two objects
// that want the same cluster do not take turns. That an object had one is known
// from the ID in its status: a cluster whose ID Omni has not told yet waits.
func (c Claim) adoptable() bool { return c.Adopt && c.KnownID == "" && c.Live.Exists }

// replaced reports whether a cluster that carries our mark is known to be another
// one than this object made, and nobody allowed it to take that one's place.
// The mark alone does not tell: a template that was exported from the old one
// carries it along.
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

// IsAdopting reports whether every destroy has to be approved: an existing cluster
// is taken over, and never had a plan without changes since. status is what was
// written before the first change, for when the object's word changes or the
// cluster's ID is known by now.
func (c Claim) IsAdopting(status bool) bool {
	if !c.Live.Exists {
		return false
	}

	// A replacement that was allowed holds what this object did not make, too.
	accepted := c.Owned() && c.KnownID != "" && c.Live.UUID != c.KnownID && c.Recreate == c.KnownID

	return status || c.adoptable() || accepted
}
