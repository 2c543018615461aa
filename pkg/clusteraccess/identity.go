package clusteraccess

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// AcceptNone is the value of the annotation omni.texashpc.com/accept-cluster that accepts a cluster whose identity
// cannot be determined.
const AcceptNone = "none"

// Source is where an identity comes from.
type Source string

// The sources of an identity.
const (
	// SourceToken is the claim cluster_uuid of a token that Omni issued: the cluster's UUID in Omni.
	SourceToken Source = "token"
	// SourceKubeSystem is the UID of the namespace kube-system, which commonly serves as the identity of a cluster.
	SourceKubeSystem Source = "kube-system"
	// SourceNone means that neither was available.
	SourceNone Source = "none"
)

// Identity is the identity of a kubeconfig's cluster. ID is empty if and only if Source is SourceNone.
type Identity struct {
	Source Source
	ID     string
}

// usable reports whether a text can be an ID of a cluster. Those that Kubernetes and Omni give are UUIDs; another text may be
// of any size, and IDs get into statuses.
func usable(id string) bool {
	return id != "" && len(id) <= validation.LabelValueMaxLength && len(validation.IsValidLabelValue(id)) == 0
}

// Claim holds the facts that decide whether a cluster is the right one.
type Claim struct {
	// Found is the identity of the cluster that answered.
	Found Identity
	// OmniClusterID is the UUID of the OmniCluster's cluster in Omni. Empty if unknown.
	OmniClusterID string
	// Observed is true if the OmniCluster has changePolicy Observe: it shows an ID only of a cluster that was its own before.
	Observed bool
	// Known is the ID that the object worked with before (status.clusterID). Empty if never.
	Known string
	// Accept is the value of the annotation omni.texashpc.com/accept-cluster. Empty if not set.
	Accept string
	// Deleting is the name of the kubeconfig's Secret if the object is being deleted; else empty. Accepting another
	// cluster does not help a deletion: the objects to remove are not there.
	Deleting string
}

// Verdict reports whether a cluster may be used.
type Verdict struct {
	// Right is true if the cluster may be used.
	Right bool
	// Waits is true if the cluster is not Right only because its OmniCluster's ID is not known yet.
	Waits bool
	// ClusterID is the value for status.clusterID if Right; empty if the identity is unknown.
	ClusterID string
	// Message is the reason, for people.
	Message string
}

// Judge decides whether a cluster may be used: it must be the OmniCluster's, as far as that can be determined, and the
// same as before. A token of Omni alone is not enough: the OmniCluster's ID, which comes soon, has to match. Neither is the
// same cluster as before: an OmniCluster that was made anew is for another one. A user overrides all of this by naming the
// cluster in the annotation.
func (c Claim) Judge() Verdict {
	switch {
	case c.Found.Source == SourceNone:
		return c.judgeUnknown()
	case c.Accept == c.Found.ID:
		return Verdict{Right: true, ClusterID: c.Found.ID, Message: fmt.Sprintf("connected to cluster %s, as accepted", c.Found.ID)}
	case c.Found.Source == SourceToken && c.OmniClusterID != "" && c.Found.ID != c.OmniClusterID:
		return c.wrong(fmt.Sprintf("the kubeconfig is for cluster %s, the OmniCluster's is %s; nothing is done there", c.Found.ID, c.OmniClusterID),
			"export a new kubeconfig, or "+accept(c.Found.ID))
	case c.Found.Source == SourceKubeSystem && c.Known != "" && c.Known == c.OmniClusterID:
		return c.wrong(fmt.Sprintf("it cannot be told whether this still is cluster %s: the kubeconfig no longer holds a token of Omni; nothing is done there", c.Known),
			"export a new kubeconfig, or, if the cluster is the right one, "+accept(c.Found.ID))
	case c.Known != "" && c.Known != c.Found.ID:
		return c.wrong(fmt.Sprintf("the kubeconfig leads to cluster %s, before it was %s; nothing is done there", c.Found.ID, c.Known),
			"to go on with it, "+accept(c.Found.ID))
	case c.Found.Source == SourceToken && c.OmniClusterID == "" && !c.sameAsBefore():
		return c.unknownYet()
	case c.Found.Source == SourceKubeSystem:
		return Verdict{Right: true, ClusterID: c.Found.ID, Message: "connected; the cluster is known by the UID of its namespace kube-system"}
	default:
		return Verdict{Right: true, ClusterID: c.Found.ID, Message: fmt.Sprintf("connected to cluster %s", c.Found.ID)}
	}
}

// sameAsBefore reports whether the ID that the object worked with is enough to compare with: what a deletion removes was
// made in that cluster, and an OmniCluster that only observes is for whatever cluster has its name.
func (c Claim) sameAsBefore() bool {
	return c.Known == c.Found.ID && (c.Deleting != "" || c.Observed)
}

// judgeUnknown decides about a cluster that has no identity. The first use has nothing to compare with; later uses must
// not be checked less than the one before.
func (c Claim) judgeUnknown() Verdict {
	if c.Known != "" && c.Accept != AcceptNone {
		return c.wrong(fmt.Sprintf("it cannot be told whether this still is cluster %s: the kubeconfig holds no token of Omni and its user may not "+
			"read the namespace kube-system; nothing is done there", c.Known), "allow that, or "+accept(AcceptNone))
	}

	return Verdict{Right: true, Message: "connected; which cluster it is was not checked: the kubeconfig holds no token of Omni and its user may not read the namespace kube-system"}
}

// unknownYet is the verdict for a cluster that cannot be verified yet.
func (c Claim) unknownYet() Verdict {
	what := fmt.Sprintf("the kubeconfig is for cluster %s; whether that is the OmniCluster's is not known yet: "+
		"waiting for its ID (status.omniClusterID), nothing is done there before", c.Found.ID)
	if c.Deleting != "" {
		return Verdict{Waits: true, Message: what}
	}

	return Verdict{Waits: true, Message: what + ". An OmniCluster that has no cluster of its own in Omni, such as with changePolicy Observe, " +
		"never shows one: then " + accept(c.Found.ID)}
}

// wrong is the verdict about a cluster that must not be used: what is wrong, and the remedy.
func (c Claim) wrong(what, remedy string) Verdict {
	if c.Deleting != "" {
		remedy = fmt.Sprintf("put a kubeconfig of cluster %s back into Secret %q, so that what was made there can be removed",
			cmp.Or(c.Known, c.OmniClusterID), c.Deleting)
	}

	return Verdict{Message: what + ": " + remedy}
}

func accept(id string) string {
	return "set the annotation " + v1alpha1.AnnotationAcceptCluster + ": " + id
}

// Moved returns where an object's work stays after a user has moved it to another cluster, and why, as the end of "X
// stays"; empty if the cluster is the same.
func Moved(before, now string) string {
	if before == "" || before == now {
		return ""
	}

	if now == "" {
		now = "whose ID is not known"
	}

	return fmt.Sprintf("in cluster %s: the object goes on in the cluster %s, as accepted. Remove it by hand, unless both are the same cluster", before, now)
}
