package omnicluster

import (
	"fmt"

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
// cluster of ours and for a name that is free.
func judgeClaim(c claim) loop.Outcome {
	live := c.live

	switch {
	case live.Exists && live.TearingDown:
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "cluster %q is being torn down in Omni since %s; nothing is planned until it is gone",
			c.name, shownTime(live.TearingDownSince))
	case owned(live, c.uid):
		return loop.Continue(v1alpha1.ReasonUpToDate, "the cluster carries this object's mark")
	case live.Exists && c.knownID != "" && live.Marks.UID != "":
		return loop.Stall(v1alpha1.ReasonOwnershipLost, "cluster %q in Omni now belongs to %s; it is not taken back", c.name, owner(live.Marks))
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

func notOwned(c claim) string {
	text := fmt.Sprintf("cluster %q exists in Omni and was not made by this object", c.name)
	if c.live.Marks.UID != "" {
		text = fmt.Sprintf("cluster %q exists in Omni and belongs to %s", c.name, owner(c.live.Marks))
	}

	if c.adopt {
		return text + "; adopting it is not available yet (spec.adopt waits), so nothing is changed"
	}

	return text + "; nothing is changed: make a new OmniCluster with another spec.clusterName"
}

// owner names the holder of a mark for people.
func owner(marks omni.Marks) string {
	text := fmt.Sprintf("OmniCluster %s/%s", marks.Namespace, marks.Name)
	if marks.ManagementCluster != "" {
		text += " of management cluster " + marks.ManagementCluster
	}

	return omni.Sanitize(text) + fmt.Sprintf(" (UID %s)", omni.Sanitize(marks.UID))
}
