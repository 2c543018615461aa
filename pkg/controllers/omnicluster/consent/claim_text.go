package consent

import (
	"fmt"
	"strconv"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

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
