package clusteraccess

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// AcceptNone is the value of the annotation omni.texashpc.com/accept-cluster that
// accepts a cluster whose identity cannot be found out.
const AcceptNone = "none"

// Source says where an identity comes from.
type Source string

// The sources of an identity.
const (
	// SourceToken is the claim cluster_uuid of a token that Omni issued: the
	// cluster's UUID in Omni.
	SourceToken Source = "token"
	// SourceKubeSystem is the UID of the namespace kube-system, the field's usual
	// stand-in for an identity of a cluster.
	SourceKubeSystem Source = "kube-system"
	// SourceNone says that neither was to be had.
	SourceNone Source = "none"
)

// Identity says which cluster a kubeconfig leads to. ID is empty if and only if
// Source is SourceNone.
type Identity struct {
	Source Source
	ID     string
}

// claims are the parts of a token of Omni that are of interest. They are read
// without checking the signature: Omni's proxy does that, and lets the token
// through to this cluster only.
type claims struct {
	ClusterUUID string `json:"cluster_uuid"`
	Expires     int64  `json:"exp"`
}

// claimsLimits bound the claims of a token. Those of Omni have a few hundred bytes.
//
//nolint:gochecknoglobals // a constant
var claimsLimits = foreign.Limits{Bytes: 16 << 10, Depth: 16, Nodes: 1000, Expanded: 16 << 10}

// readClaims reads a token; a token of another form, or with claims of another size, has none.
func readClaims(token string) claims {
	var found claims

	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return found
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !json.Valid(payload) {
		return claims{}
	}

	// JSON waits for nobody, so there is nothing to interrupt.
	if foreign.Unmarshal(context.Background(), payload, claimsLimits, &found) != nil {
		return claims{}
	}

	return found
}

// expiry is when the token expires; zero if it does not say.
func (c claims) expiry() time.Time {
	if c.Expires <= 0 {
		return time.Time{}
	}

	return time.Unix(c.Expires, 0).UTC()
}

// Claim is what decides whether a cluster is the one that was meant.
type Claim struct {
	// Found is the identity of the cluster that answered.
	Found Identity
	// OmniClusterID is the UUID of the OmniCluster's cluster in Omni. Empty if unknown.
	OmniClusterID string
	// Known is the ID that the object worked with before (status.clusterID). Empty if never.
	Known string
	// Accept is the value of the annotation omni.texashpc.com/accept-cluster. Empty if not set.
	Accept string
	// Deleting is the name of the kubeconfig's Secret if the object is being deleted; else empty. A
	// deletion is not helped by accepting another cluster: what is to be removed is not there.
	Deleting string
}

// Verdict reports whether a cluster may be used.
type Verdict struct {
	// Right is true if the cluster may be used.
	Right bool
	// Waits is true if it is not Right only because nobody has said yet which cluster is meant.
	Waits bool
	// ClusterID is what to remember as status.clusterID if Right; empty if the
	// identity is unknown.
	ClusterID string
	// Message says why, for people.
	Message string
}

// Judge decides whether a cluster may be used: it must be the OmniCluster's, as
// far as that can be told, and the same as before. A token of Omni is never taken
// at its first word: Omni is about to tell which cluster it has to be for. A person
// overrules all that by naming the cluster in the annotation.
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
	case c.Found.Source == SourceToken && c.OmniClusterID == "" && c.Known == "":
		return c.unknownYet()
	case c.Found.Source == SourceKubeSystem:
		return Verdict{Right: true, ClusterID: c.Found.ID, Message: "connected; the cluster is known by the UID of its namespace kube-system"}
	default:
		return Verdict{Right: true, ClusterID: c.Found.ID, Message: fmt.Sprintf("connected to cluster %s", c.Found.ID)}
	}
}

// judgeUnknown decides about a cluster that has no identity: a first look has
// nothing to compare with, a later one must not be weaker than the one before.
func (c Claim) judgeUnknown() Verdict {
	if c.Known != "" && c.Accept != AcceptNone {
		return c.wrong(fmt.Sprintf("it cannot be told whether this still is cluster %s: the kubeconfig holds no token of Omni and its user may not "+
			"read the namespace kube-system; nothing is done there", c.Known), "allow that, or "+accept(AcceptNone))
	}

	return Verdict{Right: true, Message: "connected; which cluster it is was not checked: the kubeconfig holds no token of Omni and its user may not read the namespace kube-system"}
}

// unknownYet is for a cluster that nobody vouches for yet.
func (c Claim) unknownYet() Verdict {
	what := fmt.Sprintf("the kubeconfig is for cluster %s; whether that is the OmniCluster's is not known yet: "+
		"waiting for its ID (status.omniClusterID), nothing is done there before", c.Found.ID)
	if c.Deleting != "" {
		return Verdict{Waits: true, Message: what}
	}

	return Verdict{Waits: true, Message: what + ". An OmniCluster that has no cluster of its own in Omni, such as with changePolicy Observe, " +
		"never shows one: then " + accept(c.Found.ID)}
}

// wrong is the verdict about a cluster that must not be used: what is wrong, and
// what helps an object that stays.
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

// Moved says where an object's work stays that a person has led to another cluster
// than before, and why, as the end of "X stays"; empty if it works with the same.
func Moved(before, now string) string {
	if before == "" || before == now {
		return ""
	}

	if now == "" {
		now = "whose ID is not known"
	}

	return fmt.Sprintf("in cluster %s: the object goes on in the cluster %s, as accepted. Remove it by hand, unless both are the same cluster", before, now)
}
