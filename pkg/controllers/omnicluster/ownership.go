package omnicluster

import (
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

// claim is what decides whether a cluster in Omni is this object's to change.
type claim struct {
	name     string // of the cluster in Omni
	uid      string // of the OmniCluster
	knownID  string // status.omniClusterID
	adopt    bool   // spec.adopt
	recreate string // value of the annotation that allows a lost cluster to be made again
	live     omni.Live
	// lastSeen is status.endpoint, where the cluster is or may be, and endpoint is
	// where the connection leads now.
	lastSeen, endpoint string
}

// markKeys are the annotations that hold the owner's mark.
func markKeys() omni.MarkKeys {
	return omni.MarkKeys{
		UID: v1alpha1.MarkOwnerUID, Namespace: v1alpha1.MarkOwnerNamespace,
		Name: v1alpha1.MarkOwnerName, ManagementCluster: v1alpha1.MarkManagementCluster,
	}
}

// owned tells whether a cluster exists in Omni and carries this object's mark.
// The UID alone decides.
func owned(live omni.Live, uid string) bool { return live.Exists && live.Marks.UID == uid && uid != "" }

// judgeClaim decides whether the cluster may be planned: it continues for a
// cluster of ours, for a name that is free, and for a cluster that is to be
// adopted.
func judgeClaim(c claim) loop.Outcome {
	live := c.live

	switch {
	case live.Exists && live.TearingDown:
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "cluster %q is being torn down in Omni since %s; nothing is planned until it is gone",
			c.name, shownTime(live.TearingDownSince))
	case owned(live, c.uid):
		return judgeIdentity(c)
	case c.knownID == "" && c.lastSeen != "" && c.lastSeen != c.endpoint:
		return loop.Stall(v1alpha1.ReasonEndpointChanged,
			"cluster %q may be at %s, but the connection leads to %s, and Omni had not told the cluster's ID before: change it back. "+
				"To make the cluster at %s and leave what is at %s, delete this object with spec.deletePolicy.orphan and create it again",
			c.name, c.lastSeen, c.endpoint, c.endpoint, c.lastSeen)
	case live.Exists && c.knownID != "" && live.Marks.UID != "":
		return loop.Stall(v1alpha1.ReasonOwnershipLost, "cluster %q in Omni now belongs to %s; it is not taken back", c.name, owner(live.Marks))
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
	case c.knownID != "" && c.live.UUID == "" && c.recreate != c.knownID:
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
	accepted := owned(c.live, c.uid) && c.knownID != "" && c.live.UUID != c.knownID && c.recreate == c.knownID

	return status || adoptable(c) || accepted
}

func notOwned(c claim) string {
	text := fmt.Sprintf("cluster %q exists in Omni and was not made by this object", c.name)
	if c.live.Marks.UID != "" {
		text = fmt.Sprintf("cluster %q exists in Omni and belongs to %s", c.name, owner(c.live.Marks))
	}

	if c.knownID != "" {
		return text + fmt.Sprintf("; nothing is changed. If it is the one that this object made and somebody erased its mark, put the annotation back in Omni: %s: %s",
			v1alpha1.MarkOwnerUID, c.uid)
	}

	return text + "; nothing is changed. To take it over set spec.adopt: true, or make a new OmniCluster with another spec.clusterName"
}

// owner names the holder of a mark for people.
func owner(marks omni.Marks) string {
	text := fmt.Sprintf("OmniCluster %s/%s", marks.Namespace, marks.Name)
	if marks.ManagementCluster != "" {
		text += " of management cluster " + marks.ManagementCluster
	}

	return omni.Sanitize(text) + fmt.Sprintf(" (UID %s)", omni.Sanitize(marks.UID))
}
